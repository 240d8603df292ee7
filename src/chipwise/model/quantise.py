"""Reads how a checkpoint is quantised, and marks every weight with the format it is stored in.

In: the `quantization_config` of a config, or the `hf_quant_config.json` beside it. Out: a `Scheme`, and a draft whose
weights carry their formats. `dialects/` knows the quantisers; this file knows names and layers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from chipwise.model.draft import Draft
from chipwise.model.spec import Experts, Layer, Tower, Weight

# The other names that checkpoints and engines use for a module, and for the block it stands in.
_LEAVES: Mapping[str, tuple[str, ...]] = {
    "q_proj": ("qkv_proj", "wq"),
    "k_proj": ("qkv_proj", "wk"),
    "v_proj": ("qkv_proj", "wv"),
    "o_proj": ("out_proj", "wo"),
    "gate_proj": ("gate_up_proj", "w1"),
    "up_proj": ("gate_up_proj", "w3"),
    "down_proj": ("w2",),
    "q_a_proj": ("wq_a", "fused_qkv_a_proj", "fused_wqa_wkv"),
    "q_b_proj": ("wq_b",),
    "kv_a_proj_with_mqa": ("wkv_a", "fused_qkv_a_proj"),
    "kv_b_proj": ("wkv_b",),
    "o_a_proj": ("wo_a",),
    "o_b_proj": ("wo_b",),
}
_LEAVES_OF_ATTENTION: Mapping[str, tuple[str, ...]] = {"kv_proj": ("wkv", "fused_wqa_wkv")}
_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "self_attn": ("self_attn", "attn"),
    "mlp": ("mlp", "ffn", "block_sparse_moe"),
    "block_sparse_moe": ("block_sparse_moe", "mlp", "ffn"),
}
_LAYER_OF = re.compile(r"^(?:model|language_model|text_model|backbone|transformer|decoder|thinker|llm|\.)*\.?layers\.")
_TOWER_WORDS = ("vision", "visual", "vit", "img", "image", "audio", "embed_vision")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """A list of module names as quantisers write it: exact names, `*` wildcards, `re:` expressions, mere parts."""

    plain: frozenset[str] = frozenset()
    wild: tuple[str, ...] = ()
    expressions: tuple[re.Pattern[str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.plain or self.wild or self.expressions)

    @property
    def by_layer(self) -> bool:
        """Whether any of them names single layers, so that equal layers may be stored differently."""
        texts = [*self.plain, *self.wild, *(expression.pattern for expression in self.expressions)]
        return any(re.search(r"\d", text) for text in texts)

    def match(self, name: str) -> bool:
        """Whether a module of this canonical name (`layers.3.self_attn.q_proj`) is meant.

        >>> names_of(["lm_head", "re:.*self_attn.*", "model.layers.*.mlp.router"]).match("layers.3.mlp.router")
        True
        """
        return any(self._match_one(other) for other in _spellings(name))

    def _match_one(self, name: str) -> bool:
        tokens = name.split(".")
        for start in range(len(tokens)):
            for stop in range(start + 1, len(tokens) + 1):
                if ".".join(tokens[start:stop]) in self.plain:
                    return True
        if any(fnmatchcase(name, wild) or fnmatchcase(name, f"{wild}.*") for wild in self.wild):
            return True
        whole = f"model.{name}" if name.startswith("layers.") else name
        return any(expression.match(whole) for expression in self.expressions)

    def tower(self) -> bool:
        """Whether the list keeps a vision or audio tower out."""
        texts = [*self.plain, *self.wild, *(expression.pattern for expression in self.expressions)]
        return any(word in text for text in texts for word in _TOWER_WORDS)


def _spellings(name: str) -> Iterable[str]:
    head, dot, leaf = name.rpartition(".")
    leaves = (leaf, *_LEAVES.get(leaf, ()))
    if head.endswith("self_attn"):
        leaves += _LEAVES_OF_ATTENTION.get(leaf, ())
    tokens = head.split(".")
    block = next((token for token in tokens if token in _BLOCKS), "")
    for spelt in _BLOCKS.get(block, ("",)):
        front = ".".join(spelt if token == block else token for token in tokens) if block else head
        for last in leaves:
            yield f"{front}{dot}{last}"


def _canonical(name: str) -> str:
    return _LAYER_OF.sub("layers.", name)


def names_of(patterns: Iterable[object]) -> Names:
    """Sort a list of patterns by how it must be matched; an expression that does not compile matches nothing."""
    plain, wild, expressions = set(), [], []
    for pattern in patterns:
        if not isinstance(pattern, str):
            continue
        if pattern.startswith("re:"):
            compiled = _compile(pattern[3:])
            expressions += [compiled] if compiled else []
        elif "*" in pattern:
            wild.append(_canonical(pattern))
        else:
            plain.add(_canonical(pattern))
    return Names(plain=frozenset(plain), wild=tuple(wild), expressions=tuple(expressions))


_LONGEST_PATTERN = 500
# A repeat within a repeat can take for ever on a name that does not match.
_NESTED_REPEAT = re.compile(r"[*+}]\)[*+{]")


def _compile(pattern: str) -> re.Pattern[str] | None:
    if len(pattern) > _LONGEST_PATTERN or _NESTED_REPEAT.search(pattern):
        return None
    try:
        return re.compile(pattern)
    except re.error:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Modules that `names` mean (None: every linear one) are stored in `format` (None: at the dtype)."""

    format: str | None
    names: Names | None = None
    experts_only: bool = False

    def applies(self, name: str, weight: Weight) -> bool:
        """Whether this rule decides `weight`, whose full name is `name`."""
        if self.experts_only and weight.part != "expert":
            return False
        return self.names is None or self.names.match(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How a checkpoint is quantised: the first rule that applies decides; `ignored` modules stay at the dtype.

    `towers`, `head` and `embeddings` say what else is taken, `notes` what could not be read (no rules: nothing could).
    `leaves` (GGUF) knows the format of every tensor by `leaf_key`, embeddings too; it goes before the rules.
    """

    method: str
    rules: tuple[Rule, ...]
    ignored: Names = field(default_factory=Names)
    activation_format: str | None = None
    kv_format: str | None = None
    towers: bool = False
    head: bool = False
    embeddings: bool = False
    notes: tuple[str, ...] = ()
    leaves: Mapping[str, str] = field(default_factory=dict)
    inferred_from: str | None = None

    @property
    def main_format(self) -> str:
        """The format most weights have: the experts' own, or that of the most general rule."""
        formats = [rule.format for rule in self.rules if rule.format]
        experts = next((rule.format for rule in self.rules if rule.format and rule.experts_only), None)
        return experts or (formats[-1] if formats else "unknown")

    @property
    def stores(self) -> bool:
        """Whether it stores anything in a format of its own."""
        return bool(self.leaves) or any(rule.format for rule in self.rules)

    @property
    def by_layer(self) -> bool:
        """Whether layers of one kind may differ in format."""
        return (
            bool(self.leaves)
            or self.ignored.by_layer
            or any(rule.names is not None and rule.names.by_layer for rule in self.rules)
        )

    def _takes(self, weight: Weight) -> bool:
        """Whether it quantises weights of this kind at all."""
        if weight.part == "embedding":
            return self.embeddings and weight.in_features > 1
        return weight.gemm and (weight.quantisable or (self.head and weight.part == "head"))

    def format_of(self, name: str, weight: Weight) -> str | None:
        """The stored format of `weight`, None where it stays at the dtype."""
        if self.leaves:
            return self.leaves.get(leaf_key(name)) or (self.main_format if weight.in_features > 1 else "fp32")
        if not self._takes(weight) or self.ignored.match(name):
            return None
        return next((rule.format for rule in self.rules if rule.applies(name, weight)), None)


_LAYER_NUMBER = re.compile(r"layers\.(\d+)\.")


def leaf_key(name: str) -> str:
    """What tells one weight from another in a layer: its number, whether it is an expert's, its last name.

    >>> leaf_key("layers.3.mlp.experts.0.gate_proj")
    '3|expert|gate_proj'
    """
    found = _LAYER_NUMBER.search(name)
    kind = "expert" if "experts." in name and "shared_experts" not in name else ""
    return f"{found.group(1) if found else ''}|{kind}|{name.rsplit('.', 1)[-1]}"


def at_dtype(draft: Draft, dtype_format: str) -> Draft:
    """Every weight in the checkpoint's plain format."""
    if dtype_format == "bf16":  # what weights are born with
        return draft
    return _mapped(draft, lambda weight: replace(weight, format=dtype_format))


def quantised(draft: Draft, scheme: Scheme) -> Draft:
    """The draft with each weight in the format that the scheme stores it in; runs split where layers differ."""
    by_layer = scheme.by_layer
    layers = tuple(part for layer in draft.layers for part in _layer(layer, scheme, by_layer=by_layer))
    keep_towers = not scheme.towers or scheme.ignored.tower()
    offset = sum(layer.count for layer in draft.layers)
    mtp = tuple(
        replace(part, indices=layer.indices)
        for layer in draft.mtp
        for part in _layer(replace(layer, indices=(offset,)), scheme, by_layer=False)
    )
    return replace(
        draft,
        layers=layers,
        mtp=mtp,
        outer=tuple(_marked(weight, weight.name, scheme) for weight in draft.outer),
        towers=draft.towers if keep_towers else tuple(_tower(tower, scheme) for tower in draft.towers),
    )


def _layer(layer: Layer, scheme: Scheme, *, by_layer: bool) -> list[Layer]:
    indices = layer.indices or (0,)
    if not by_layer:
        return [_formatted(layer, indices[0], scheme)]
    runs: dict[Layer, list[int]] = {}
    for index in indices:
        made = replace(_formatted(layer, index, scheme), count=1, indices=())
        runs.setdefault(made, []).append(index)
    if len(runs) == 1:
        return [_formatted(layer, indices[0], scheme)]
    return [replace(made, count=len(where), indices=tuple(where)) for made, where in runs.items()]


LATENTS_KEPT = frozenset({"nvfp4", "mxfp4"})
"""Formats of which published checkpoints leave latent attention (MLA) in 16 bits: NVIDIA/Model-Optimizer issue 150 (the
NVFP4 of DeepSeek-R1) and ROCm/ATOM pull request 527 (its MXFP4)."""


def _formatted(layer: Layer, index: int, scheme: Scheme) -> Layer:
    """A layer in the scheme's formats. Words alone name no exceptions: latent attention is one that is usual."""
    usual = scheme.inferred_from is not None and scheme.main_format in LATENTS_KEPT
    kept = "attention" if usual and layer.attention.kind == "mla" else ""
    weights = tuple(
        weight if weight.part == kept else _marked(weight, f"layers.{index}.{weight.name}", scheme)
        for weight in layer.weights
    )
    experts = layer.experts
    if experts is not None:
        experts = _experts(experts, index, scheme)
    return replace(layer, weights=weights, experts=experts)


def _experts(experts: Experts, index: int, scheme: Scheme) -> Experts:
    def full(name: str) -> str:
        return f"layers.{index}.{name.replace('experts.', 'experts.0.', 1)}"

    return replace(experts, weights=tuple(_marked(weight, full(weight.name), scheme) for weight in experts.weights))


def _tower(tower: Tower, scheme: Scheme) -> Tower:
    return replace(
        tower,
        layers=tuple(_formatted(layer, 0, scheme) for layer in tower.layers),
        weights=tuple(_marked(weight, f"{tower.name}.{weight.name}", scheme) for weight in tower.weights),
    )


def _marked(weight: Weight, name: str, scheme: Scheme) -> Weight:
    chosen = scheme.format_of(name, weight)
    return replace(weight, format=chosen) if chosen else weight


def _mapped(draft: Draft, change: Callable[[Weight], Weight]) -> Draft:
    def layer(old: Layer) -> Layer:
        experts = old.experts
        if experts is not None:
            experts = replace(experts, weights=tuple(map(change, experts.weights)))
        return replace(old, weights=tuple(map(change, old.weights)), experts=experts)

    def tower(old: Tower) -> Tower:
        return replace(old, layers=tuple(map(layer, old.layers)), weights=tuple(map(change, old.weights)))

    return replace(
        draft,
        layers=tuple(map(layer, draft.layers)),
        mtp=tuple(map(layer, draft.mtp)),
        outer=tuple(map(change, draft.outer)),
        towers=tuple(map(tower, draft.towers)),
    )
