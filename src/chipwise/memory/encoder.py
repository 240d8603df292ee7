"""What vision towers are profiled with: how many patches an engine runs through one at start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from chipwise.facts import read_rows
from chipwise.memory.profile import DATA, MemoryProfile
from chipwise.parallelism import Number

COLUMNS = (
    "model_type",
    "patches_per_token",
    "tokens_per_item",
    "hidden_copies",
    "per_sequence",
    "replicated",
    "kind",
    "source",
    "where",
    "read_on",
)
_ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFacts:
    """The tower of one family: its largest item (an image) in tokens, and what a layer holds of a patch."""

    patches_per_token: float
    tokens_per_item: float
    hidden_copies: float
    """Hidden states alive at the peak of a layer."""
    per_sequence: bool
    """Every sequence of the profile brings an item: encoder-decoder models."""
    replicated: bool
    """Tensor parallelism does not cut it: every device holds all of it."""


@cache
def _table() -> dict[str, EncoderFacts]:
    rows = (dict(zip(COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "encoders.csv", COLUMNS))
    return {
        row["model_type"]: EncoderFacts(
            patches_per_token=float(row["patches_per_token"]),
            tokens_per_item=float(row["tokens_per_item"]),
            hidden_copies=float(row["hidden_copies"]),
            per_sequence=row["per_sequence"] == "true",
            replicated=row["replicated"] == "true",
        )
        for row in rows
    }


def encoder_facts(model_type: str) -> EncoderFacts:
    """The tower of a family; one that no row names is taken to encode a step's tokens at once.

    >>> encoder_facts("qwen2_5_vl").tokens_per_item, encoder_facts("a family of its own").tokens_per_item
    (16384.0, 1.0)
    """
    return _table().get(model_type, _table()[_ANY])


def profiled_items(
    facts: EncoderFacts, profile: MemoryProfile, *, chunk_tokens: Number, max_num_seqs: Number
) -> Number:
    """Items that the profile encodes at once: as many as a step's tokens hold, at least one, at most the sequences.

    `min(max(tokens // tokens per item, 1), sequences)`; an encoder-decoder model: one a sequence.
    """
    tokens = np.maximum(chunk_tokens, profile.encoder_least_tokens)
    held = np.maximum(np.floor(tokens / facts.tokens_per_item), 1.0)
    small = facts.tokens_per_item <= 1
    fewest = held if small else np.minimum(held, max_num_seqs)
    return np.asarray(max_num_seqs, dtype=float) if facts.per_sequence else fewest


def profiled_rows(
    facts: EncoderFacts, profile: MemoryProfile, *, items: Number, max_num_seqs: Number, seeing: bool
) -> Number:
    """Sequences whose logits the profile samples: all, or where the engine limits them no more than items."""
    limited = seeing and profile.encoder_limits_sequences and not facts.per_sequence and facts.tokens_per_item > 1
    return np.minimum(max_num_seqs, items) if limited else max_num_seqs
