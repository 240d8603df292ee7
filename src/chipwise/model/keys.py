"""Look-up of config keys: required, optional, nested, under any of several names; what is missing is named."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chipwise.errors import InputError, KnowledgeError

MOST_LAYERS = 100_000
MOST_SIZE = 2**40
# Blocks of a network that are laid out one by one.
MOST_BLOCKS = 1_000

# Names for one thing in configs of different houses. The first is the one an error message asks for.
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim", "model_dim", "embed_dim", "embedding_dim")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", "num_query_groups")
HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels")
FFN = ("intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner", "d_ff", "inter_dim", "hidden_dim")
VOCAB = ("vocab_size", "padded_vocab_size", "n_vocab")
CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_sequence_length",
    "model_max_length",
    "seq_length",
    "n_ctx",
    "max_target_positions",
    "context_length",
)
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_top_k", "moe_k")

# What a config must say itself at its top level: a class default here would be a guess at which model it is.
ESSENTIAL = frozenset(
    {*HIDDEN, *LAYERS, *HEADS, *FFN, *VOCAB, *EXPERTS, *PER_TOKEN, "moe_intermediate_size", "kv_lora_rank"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """A config, or a part of one nested at `path`, with the defaults of its class.

    `nested` allows every default of the class (a nested part is written without them); a top level may only
    leave out what is not `ESSENTIAL`. `notes` collects what was taken from a default, shared over the parts.

    >>> Keys(data={"n_layer": 12}).size("num_hidden_layers", "n_layer")
    12
    """

    data: Mapping[str, Any]
    path: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    nested: bool = False
    head: str = ""
    notes: list[str] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """Whether the config says one of `names` (null counts as silence)."""
        return any(self.data.get(name) is not None for name in names)

    def raw(self, *names: str) -> Any:
        """The value of the first of `names` that is said, else the class default where one may stand in, else None.

        An explicit null is an answer: it keeps the class default out.
        """
        for name in names:
            if self.data.get(name) is not None:
                return self.data[name]
        if any(name in self.data for name in names):
            return None
        for name in names:
            if self.defaults.get(name) is not None and (self.nested or name not in ESSENTIAL):
                if name in ESSENTIAL:
                    self.notes.append(f"{self.path}{name} is not in the config: class default {self.defaults[name]}")
                return self.defaults[name]
        return None

    def need(self, *groups: tuple[str, ...]) -> None:
        """Refuse a config that leaves any of `groups` unsaid, naming all that are missing.

        Raises:
            KnowledgeError: one or more of the groups has no value.
        """
        missing = [self.path + group[0] for group in groups if self.raw(*group) is None]
        if missing:
            raise self.missing(*missing)

    def missing(self, *names: str) -> KnowledgeError:
        """The error for keys that are not there."""
        return KnowledgeError(
            f"the config does not say {', '.join(names)}",
            why="the size of the model cannot be computed without, and nothing is guessed",
            fix=f"add {', '.join(names)} to the config, or give the safetensors or GGUF file",
        )

    def wrong(self, name: str, value: Any, expected: str) -> InputError:
        """The error for a value of the wrong type or range."""
        shown = repr(value)
        shown = shown if len(shown) < 60 else shown[:57] + "..."
        return InputError(
            f"{self.path}{name} is {shown}",
            why=f"{expected} is expected there",
            fix="correct the config, or fetch the original file again",
        )

    def size(self, *names: str, default: int | None = None, least: int = 0) -> int:
        """A whole number under the first of `names` that is said; `default` where none is.

        Raises:
            KnowledgeError: none is said and there is no default.
            InputError: not a whole number from `least` to 2**40.
        """
        value = self.raw(*names)
        if value is None:
            if default is None:
                raise self.missing(self.path + names[0])
            return default
        return self._whole(names[0], value, least)

    def maybe(self, *names: str) -> int | None:
        """As `size`, or None where nothing is said."""
        value = self.raw(*names)
        return None if value is None else self._whole(names[0], value, 0)

    def _whole(self, name: str, value: Any, least: int) -> int:
        if isinstance(value, float) and math.isfinite(value) and value == int(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_SIZE:
            raise self.wrong(name, value, f"a whole number from {least} to 2**40")
        return value

    def layers(self, *names: str) -> int:
        """A number of layers, at most `MOST_LAYERS`."""
        count = self.size(*(names or LAYERS))
        if count > MOST_LAYERS:
            raise self.wrong((names or LAYERS)[0], count, f"at most {MOST_LAYERS} layers")
        return count

    def number(self, *names: str, default: float) -> float:
        """A finite real number under the first of `names` that is said."""
        value = self.raw(*names)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.wrong(names[0], value, "a finite number")
        return float(value)

    def flag(self, *names: str, default: bool = False) -> bool:
        """True or false under the first of `names` that is said."""
        value = self.raw(*names)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        if value in (0, 1):
            return bool(value)
        raise self.wrong(names[0], value, "true or false")

    def text(self, *names: str, default: str = "") -> str:
        """A string under the first of `names` that is said."""
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.wrong(names[0], value, "a string")
        return value

    def items(self, *names: str) -> Sequence[Any]:
        """A list under the first of `names` that is said; empty where none is."""
        value = self.raw(*names)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or len(value) > MOST_LAYERS:
            raise self.wrong(names[0], value, f"a list of at most {MOST_LAYERS} entries")
        return value

    def sizes(self, *names: str, count: int | None = None) -> tuple[int, ...]:
        """A list of whole numbers; a lone number stands for `count` equal ones."""
        value = self.raw(*names)
        if isinstance(value, int | float) and count is not None:
            return (self._whole(names[0], value, 0),) * count
        return tuple(self._whole(names[0], item, 0) for item in self.items(*names))

    def few(self, name: str, counts: Sequence[int]) -> Sequence[int]:
        """`counts` of blocks that are laid out one by one, where they are not too many.

        Raises:
            InputError: there are more than `MOST_BLOCKS` together.
        """
        if sum(counts) > MOST_BLOCKS:
            raise self.wrong(name, list(counts), f"at most {MOST_BLOCKS} blocks")
        return counts

    def numbers(self, *names: str) -> tuple[float, ...]:
        """A list of finite numbers under the first of `names` that is said; empty where none is."""
        items = self.items(*names)
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int | float) or not math.isfinite(item):
                raise self.wrong(names[0], item, "a finite number")
        return tuple(float(item) for item in items)

    def mapping(self, *names: str) -> Mapping[str, Any]:
        """An object under the first of `names` that is said; empty where none is."""
        value = self.raw(*names)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.wrong(names[0], value, "an object")
        return value

    def also(self, **values: Any) -> Keys:
        """These keys with some values said or said otherwise: a family's own names brought to the common ones."""
        return replace(self, data={**self.data, **values})

    @property
    def labels(self) -> int:
        """Outputs of a classification head: `num_labels`, else the entries of `id2label`, else 2."""
        named = self.data.get("id2label")
        if isinstance(named, Mapping) and named:
            return len(named)
        return self.size("num_labels", default=2)


def side_by_side(keys: Keys, name: str, *lists: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Several lists with one entry a layer, entry by entry; a config where one is shorter contradicts itself.

    >>> side_by_side(Keys(data={}), "layer_types", ["full", "full"], ["dense", "moe"])
    [('full', 'dense'), ('full', 'moe')]

    Raises:
        InputError: they differ in length.
    """
    if len({len(items) for items in lists}) > 1:
        told = f"{min(map(len, lists))} entries"
        raise keys.wrong(name, told, f"one entry for each of {max(map(len, lists))} layers")
    return list(zip(*lists, strict=True))


def divide(keys: Keys, total: int, parts: int, name: str) -> int:
    """`total / parts` as a whole number; a config whose heads do not divide its width is wrong."""
    if parts <= 0 or total % parts:
        raise keys.wrong(name, total, f"a multiple of {parts}")
    return total // parts
