"""`params:70b,layers=80,...`: a model that is not out yet, from the sizes that are known; the rest is assumed aloud."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from chipwise.errors import InputError
from chipwise.model.blocks import matrix
from chipwise.model.read import Source, read_source
from chipwise.model.spec import ModelSpec
from chipwise.units import parse_count

_KEYS = frozenset(
    {
        "active",
        "layers",
        "hidden",
        "heads",
        "kv_heads",
        "head_dim",
        "ffn",
        "vocab",
        "context",
        "experts",
        "per_token",
        "dtype",
        "window",
    }
)
_BINARY = frozenset({"context", "window"})
_EXAMPLE = "params:70b,layers=80,hidden=8192,heads=64,kv_heads=8,vocab=128k,context=128k"
_MOST_PARAMS = 10**15

# A shape like those of published dense models: width 100 times the depth, heads of 128, eight KV heads.
_WIDTH_BY_DEPTH = 100
_HEAD_DIM = 128
_KV_HEADS = 8
_VOCAB = 128_000
_PER_TOKEN = 8
_EXPERT_SHARE = 0.6
_ROUND = 128
_WIDE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    total: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int

    @property
    def around(self) -> int:
        """Parameters outside the feed-forward blocks."""
        attention = self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        return self.layers * (attention + 2 * self.hidden) + 2 * self.vocab * self.hidden + self.hidden


def from_notation(text: str) -> ModelSpec:
    """The model that `params:TOTAL[,key=value...]` describes; its total is exactly the one given.

    What is not given is assumed (and said in the warnings): width 100 times the depth, 128-wide heads, eight KV heads.

    Raises:
        InputError: it does not parse, a key is unknown, or the sizes contradict the total.

    >>> from_notation("params:70b,layers=80,hidden=8192,heads=64,kv_heads=8").params_total
    70000000000
    """
    total, given = _parse(text)
    shape, assumed = _shape(total, given)
    config = _moe(shape, given, assumed) if "active" in given else _dense(shape, given)
    spec = read_source(Source(config=config, name=text, params_source="user"))
    rest = total - spec.params_total
    if rest < 0:
        raise _wrong(text, f"the sizes given make {spec.params_total} parameters, more than {total}")
    other = matrix("rest", (rest, 1), "other")
    notes = (f"assumed, not stated: {', '.join(assumed)}",) if assumed else ()
    return replace(spec, outer=(*spec.outer, *other) if rest else spec.outer, warnings=notes)


def _parse(text: str) -> tuple[int, dict[str, int | str]]:
    head, *pairs = text.removeprefix("params:").split(",")
    total = _count(text, "params", head, most=_MOST_PARAMS)
    given: dict[str, int | str] = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not mark or key not in _KEYS:
            raise _wrong(text, f"{pair.strip()!r} is not one of {', '.join(sorted(_KEYS))}")
        given[key] = value.strip() if key == "dtype" else _count(text, key, value, most=_MOST_PARAMS)
    return total, given


def _count(text: str, key: str, value: str, *, most: int) -> int:
    count = parse_count(value, binary=key in _BINARY)
    if not 0 < count <= most:
        raise _wrong(text, f"{key} is {value!r}")
    return count


def _wrong(text: str, why: str) -> InputError:
    return InputError(f"cannot read {text[:80]!r}", why=why, fix=f"write it like {_EXAMPLE}")


def _shape(total: int, given: dict[str, int | str]) -> tuple[_Shape, list[str]]:
    assumed: list[str] = []

    def of(key: str, value: int) -> int:
        if key in given:
            return int(given[key])
        assumed.append(f"{key}={value}")
        return value

    # A dense model has about 12 * layers * hidden^2 parameters; a mixture is as wide as what it runs.
    dense = int(given.get("active", total))
    depth = max(1, round((dense / (12 * _WIDTH_BY_DEPTH**2)) ** (1 / 3)))
    step = _ROUND * 8 if depth * _WIDTH_BY_DEPTH > _WIDE else _ROUND
    hidden = of("hidden", max(step, round(depth * _WIDTH_BY_DEPTH / step) * step))
    layers = of("layers", max(1, round(dense / (12 * hidden**2))))
    heads = of("heads", max(1, hidden // _HEAD_DIM))
    kv_heads = of("kv_heads", min(_KV_HEADS, heads))
    head_dim = of("head_dim", max(1, hidden // heads))
    vocab = of("vocab", _VOCAB if total > 2 * _VOCAB * hidden * 2 else 1)
    shape = _Shape(
        total=total, layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, vocab=vocab
    )
    return shape, assumed


def _config(shape: _Shape, given: dict[str, int | str]) -> dict[str, object]:
    return {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab,
        "max_position_embeddings": given.get("context"),
        "tie_word_embeddings": False,
        "dtype": given.get("dtype", "bfloat16"),
    }


def _dense(shape: _Shape, given: dict[str, int | str]) -> dict[str, object]:
    width = int(given.get("ffn", 0)) or _rounded((shape.total - shape.around) // (3 * shape.hidden * shape.layers))
    return {**_config(shape, given), "model_type": "llama", "intermediate_size": width}


def _moe(shape: _Shape, given: dict[str, int | str], assumed: list[str]) -> dict[str, object]:
    active = int(given["active"])
    chosen = int(given.get("per_token", _PER_TOKEN))
    routed = int(given.get("experts", 0)) or _routed(shape.total, active, chosen)
    assumed += [f"{key}={value}" for key, value in (("experts", routed), ("per_token", chosen)) if key not in given]
    if not active < shape.total or not chosen < routed:
        raise _wrong(f"params:{shape.total}", "active must be below the total, and per_token below experts")
    expert = (shape.total - active) // ((routed - chosen) * shape.layers)
    width = int(given.get("ffn", 0)) or expert // (3 * shape.hidden)
    routers = routed * shape.hidden * shape.layers
    always = active - shape.around - routers - chosen * 3 * shape.hidden * width * shape.layers
    return {
        **_config(shape, given),
        "model_type": "qwen2_moe",
        "qkv_bias": False,
        "num_experts": routed,
        "num_experts_per_tok": chosen,
        "moe_intermediate_size": width,
        "shared_expert_intermediate_size": max(0, always // (3 * shape.hidden * shape.layers) - 1),
    }


def _routed(total: int, active: int, chosen: int) -> int:
    """Experts, a power of two, of which the chosen take about `_EXPERT_SHARE` of the active parameters."""
    return 1 << max(3, math.ceil(math.log2(chosen * total / (_EXPERT_SHARE * active))))


def _rounded(width: int) -> int:
    return max(0, width // _ROUND * _ROUND) or max(0, width)
