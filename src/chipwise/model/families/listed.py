"""Classes known by a list of their tensors: `data/tensors/<model_type>.json` writes each shape over the config's keys.

The long tail of detectors, segmenters, codecs, speech and document models: nothing about them is peculiar but their
shapes. A part whose own family is known (a language model, a CLIP tower) is read by that family.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from chipwise.errors import KnowledgeError
from chipwise.model import keys as k
from chipwise.model.draft import NO_ATTENTION, Draft
from chipwise.model.expressions import Value, evaluate, names_in
from chipwise.model.families.cnn import frozen_resnet
from chipwise.model.keys import Keys
from chipwise.model.nested import part_keys, read_part
from chipwise.model.spec import Attention, Layer, Part, Tower, Weight

_GENERATES = (
    "ForConditionalGeneration",
    "ForCausalLM",
    "LMHeadModel",
    "ForVisionText2Text",
    "ForTextToSpeech",
    "ForSpeechToText",
    "ForTextToText",
)
_LONGEST_NAME = 100
_HEADS = "num_attention_heads"
# Copies without a position of their own stand one by one up to so many.
_MOST_LOOSE = 64
_SIDES = ("decoder_attention_heads", "encoder_attention_heads", "attention_heads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tensor pattern: `N` in its name stands for a position, `count` and `sides` are expressions.

    `times` vectors of one size stand in one row under the first one's name.
    """

    name: str
    count: str
    sides: tuple[str, ...]
    when: Mapping[str, Any]
    times: int


@cache
def listed(model_type: str) -> Mapping[str, Any] | None:
    """The table of a model_type; None where there is none."""
    plain = model_type.replace("-", "").replace("_", "").replace(".", "")
    if not plain.isalnum() or len(plain) > _LONGEST_NAME:
        return None
    place = files("chipwise.model") / "data" / "tensors" / f"{model_type}.json"
    if not place.is_file():
        return None
    table: Mapping[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return table


@cache
def listed_types() -> tuple[str, ...]:
    """Every model_type that has a table."""
    folder = files("chipwise.model") / "data" / "tensors"
    return tuple(sorted(file.name.removesuffix(".json") for file in folder.iterdir() if file.name.endswith(".json")))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cached:
    """Which stacks look back on what they wrote: those the table names, else by name where the class generates."""

    stacks: tuple[str, ...]
    generates: bool

    def holds(self, where: str) -> bool:
        return where in self.stacks or (not self.stacks and self.generates and _looks_back(where))


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The numbers under dotted keys: the config's, else the class default (nested parts only, or no size)."""

    keys: Keys
    defaults: Mapping[str, Any]

    def said(self, path: str) -> Any:
        """What the config says under `path`; None where it is silent."""
        value: Any = self.keys.data
        for step in path.split("."):
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and step.isdigit():
                value = value[int(step)] if int(step) < len(value) else None
            else:
                return None
        return value

    def number(self, path: str) -> Value:
        """The number under `path`.

        Raises:
            KnowledgeError: nothing says it.
            InputError: it is no number.
        """
        if path == "num_labels":
            return self.keys.labels
        value = self.said(path)
        if value is None:
            value = self._default(path)
        if isinstance(value, bool):
            return int(value)
        least = min(0, self.defaults.get(path) or 0) if isinstance(self.defaults.get(path), int | float) else 0
        if not isinstance(value, int | float) or not least <= value <= k.MOST_SIZE:
            raise self.keys.wrong(path, value, f"a number from {least} to 2**40")
        return value

    def _default(self, path: str) -> Any:
        essential = path in k.ESSENTIAL and not self.keys.nested
        if essential or self.defaults.get(path) is None:
            raise self.keys.missing(self.keys.path + path)
        return self.defaults[path]

    def holds(self, when: Mapping[str, Any]) -> bool:
        """Whether every condition of a row is met: `>0`, a flag, a number."""
        return all(self._holds(path, wanted) for path, wanted in when.items())

    def _holds(self, path: str, wanted: Any) -> bool:
        value = self.said(path)
        value = self.defaults.get(path) if value is None else value
        if wanted == ">0":
            return isinstance(value, int | float) and value > 0
        return bool(value) == bool(wanted) if isinstance(wanted, bool) else value == wanted


def read_listed(keys: Keys) -> Draft:
    """Read a class by its table.

    Raises:
        KnowledgeError: its head is not listed, or a key has a value whose effect on the shapes is not known.
    """
    table = listed(keys.text("model_type")) or {}
    name, entry = _class(table, keys)
    values = Values(keys=keys, defaults=table["defaults"])
    _check(values, entry, table)
    parts = [read_nested(keys, *part) for part in entry["parts"]]
    rows = [_row(*table["rows"][index]) for index in entry["rows"]]
    own = _built(rows, values, _Cached(stacks=tuple(table.get("causal", ())), generates=name.endswith(_GENERATES)))
    draft = _joined(own, parts, table["kind"], generates=name.endswith(_GENERATES))
    warnings = () if name == (keys.head or name) else (f"{keys.head} is not listed: read as {name}",)
    return replace(draft, warnings=(*draft.warnings, *warnings, *_unknown(values, table)))


def _row(name: str, count: str, sides: Sequence[str], when: Mapping[str, Any], times: int) -> Row:
    return Row(name=name, count=count, sides=tuple(sides), when=when, times=times)


def _class(table: Mapping[str, Any], keys: Keys) -> tuple[str, Mapping[str, Any]]:
    classes: Mapping[str, Mapping[str, Any]] = table["classes"]
    if keys.head in classes:
        return keys.head, classes[keys.head]
    bare = next((name for name in classes if name.endswith("Model")), None) if keys.nested else None
    name = bare or next(iter(classes))
    return name, classes[name]


def _check(values: Values, entry: Mapping[str, Any], table: Mapping[str, Any]) -> None:
    """Refuse values whose effect on the shapes is not known.

    Those of `fixed` keys, sizes that the class takes with no other value while the rest stays (they are among its
    `words`), lists of another length.
    """
    defaults = table["defaults"]
    changed = [path for path in entry["fixed"] if _differs(values.said(path), defaults.get(path))]
    changed += [
        path for path, usual in table["words"].items() if type(usual) is int and _differs(values.said(path), usual)
    ]
    changed += _other_heads(values, defaults)
    stems = {path.rpartition(".")[0] for path in defaults if path.rpartition(".")[2].isdigit()}
    for stem in stems:
        told = values.said(stem)
        length = sum(1 for path in defaults if path.rpartition(".")[0] == stem)
        if isinstance(told, list) and len(told) < length:
            changed.append(stem)
    if changed:
        raise KnowledgeError(
            f"{', '.join(changed)} differ from the class's own values",
            why="how they change the shapes of this class is not known here",
            fix="give the safetensors file, whose header holds every shape",
        )


def _other_heads(values: Values, defaults: Mapping[str, Any]) -> list[str]:
    """Head sizes that a config says beside the keys of its class, and that are not its width by its heads."""
    places = [path.removesuffix(_HEADS) for path in defaults if path.endswith(_HEADS)]
    out = []
    for place in places:
        path = f"{place}head_dim"
        said = values.said(path)
        if path in defaults or not isinstance(said, int):
            continue
        heads, width = (values.said(place + name) or defaults.get(place + name) for name in (_HEADS, "hidden_size"))
        if isinstance(heads, int) and isinstance(width, int) and said * heads != width:
            out.append(path)
    return out


def _differs(said: Any, default: Any) -> bool:
    return said is not None and said != default


def _unknown(values: Values, table: Mapping[str, Any]) -> tuple[str, ...]:
    changed = sorted(path for path, usual in table["words"].items() if _differs(values.said(path), usual))
    return (f"not known whether {', '.join(changed)} change the size: read as if not",) if changed else ()


def read_nested(
    keys: Keys, path: str, class_name: str, kind: str = "", own: Mapping[str, Any] = MappingProxyType({})
) -> Draft:
    """A part that another family reads, from its nested config; `own` is what the whole assumes where it has none.

    A detector's ResNet has frozen batch norms.
    """
    if class_name == "frozen-resnet":
        weights, width = frozen_resnet(keys)
        return Draft(kind="cnn", outer=weights, hidden_size=width)
    *outer, last = path.split(".")
    inner = keys
    for step in outer:
        inner = part_keys(inner, step, default=step)
    if not inner.mapping(last):
        inner = inner.also(**{last: {"model_type": kind, **own}})
    default = str(inner.mapping(last).get("model_type") or kind)
    return read_part(part_keys(inner, last, default=default, head=class_name))


def _built(rows: Sequence[Row], values: Values, cached: _Cached) -> Draft:
    """Rows with a position become layers by their stack and count, the others stand outside."""
    stacks: dict[tuple[str, int], list[Weight]] = {}
    outer: list[Weight] = []
    for row in rows:
        if not values.holds(row.when):
            continue
        count = _size(row.count, values)
        sides = [_size(side, values) for side in row.sides]
        weight = _weight(row.name, sides)
        where, mark, _ = row.name.partition(".N.")
        if count > k.MOST_LAYERS:
            raise values.keys.wrong(row.count, count, f"at most {k.MOST_LAYERS} of {row.name}")
        if count > (1 if mark else _MOST_LOOSE):
            stacks.setdefault((where, count), []).extend([weight] * row.times)
        else:
            outer += [weight] * (row.times * count)
    layers = tuple(_layer(count, held, values, where, cached) for (where, count), held in stacks.items())
    return Draft(
        kind="vision",
        layers=layers,
        outer=tuple(outer),
        hidden_size=_told(values, k.HIDDEN, *map(_own_place, cached.stacks)) or 0,
        vocab_size=_told(values, k.VOCAB) or 0,
        max_context_tokens=_told(values, k.CONTEXT),
    )


def _size(text: str, values: Values) -> int:
    try:
        size = evaluate(text, values.number)
    except ZeroDivisionError:
        zero = sorted(name for name in names_in(text) if not values.number(name))
        raise values.keys.wrong(zero[0] if zero else text, 0, "a number above 0") from None
    return max(size, 0)


def _weight(name: str, sides: Sequence[int]) -> Weight:
    leaf = name
    out = sides[0] if sides else 1
    inside = 1
    for side in sides[1:]:
        inside *= side
    is_matrix = len(sides) > 1
    stored_only = any(word in leaf for word in ("embed_tokens", "embeddings", "position", "query", "token"))
    gemm = is_matrix and not (stored_only and len(sides) == 2 and "proj" not in leaf and "attention" not in leaf)
    return Weight(
        name=leaf,
        part=_part_of(leaf, is_matrix=is_matrix),
        out_features=out,
        in_features=inside,
        gemm=gemm,
        quantisable=is_matrix and gemm and len(sides) == 2,
    )


_WORDS: tuple[tuple[str, Part], ...] = (("norm", "norm"), ("attn", "attention"), ("attention", "attention"),
    ("mlp", "mlp"), ("fc1", "mlp"), ("fc2", "mlp"), ("ffn", "mlp"), ("embed", "embedding"), ("classifier", "head"),
    ("lm_head", "head"))  # fmt: skip


def _part_of(leaf: str, *, is_matrix: bool) -> Part:
    found: Part = next((part for word, part in _WORDS if word in leaf.lower()), "other")
    return found if is_matrix or found == "norm" else "norm" if "norm" in leaf else "other"


_KEYS_OF = ("k_proj", "key", "key_proj", "attention.k", "SelfAttention.k")
_VALUES_OF = ("v_proj", "value", "value_proj", "attention.v", "SelfAttention.v")
_FUSED = ("qkv_proj", "qkv", "Wqkv", "query_key_value", "att_proj")
_TEXT = ("decoder", "text_model", "language_model", "backbone_model")
_NOT_TEXT = ("encoder", "vision", "codec", "depth", "t2u", "perceiver", "resampler", "qformer")
_PLACES = ("", "decoder.", "text_config.", "decoder_config.", "language_config.")


def _looks_back(where: str) -> bool:
    """Whether a stack of a model that generates is the one that reads its own output."""
    plain = where.replace("decoder", "")
    return not any(word in plain for word in _NOT_TEXT) and (
        any(word in where for word in _TEXT) or where.removeprefix("model.") in {"layers", "h", "blocks"}
    )


def _layer(count: int, weights: Sequence[Weight], values: Values, where: str, cached: _Cached) -> Layer:
    """`count` equal layers; they cache what they look at where a decoder looks back on its own text."""
    own = [weight for weight in weights if not _crosses(weight.name) and weight.in_features > 1]
    keyed, valued, fused = (_named(own, names) for names in (_KEYS_OF, _VALUES_OF, _FUSED))
    place = _own_place(where)
    query, kv = (_told(values, names, place, then=_SIDES) for names in (k.HEADS, k.KV_HEADS))
    query = query or 1
    if keyed is not None and valued is not None:
        inside, outside = keyed.out_features, valued.out_features
    elif fused is not None:
        shares = query + 2 * (kv or query)
        inside = outside = fused.out_features * (kv or query) // shares
    else:
        return Layer(count=count, attention=NO_ATTENTION, weights=tuple(weights), indices=_indices(count))
    kv = kv or query
    kv = kv if inside % kv == 0 and outside % kv == 0 else 1
    attention = Attention(
        kind="full",
        query_heads=max(query, kv),
        kv_heads=kv,
        head_dim=inside // kv,
        value_head_dim=outside // kv,
        causal=cached.holds(where),
    )
    return Layer(count=count, attention=attention, weights=tuple(weights), indices=_indices(count))


def _named(weights: Sequence[Weight], names: tuple[str, ...]) -> Weight | None:
    return next((weight for weight in weights if weight.name.removesuffix(".linear").endswith(names)), None)


def _indices(count: int) -> tuple[int, ...]:
    return tuple(range(min(count, k.MOST_LAYERS)))


def _crosses(name: str) -> bool:
    return any(word in name for word in ("encoder_attn", "cross", "EncDecAttention"))


def _caches(draft: Draft) -> bool:
    return any(layer.attention.cache_elements_per_token for layer in draft.layers)


def _own_place(where: str) -> str:
    """Where the sizes of a stack may stand: `semantic.layers` reads `semantic_config`."""
    return f"{where.partition('.')[0]}_config."


def _told(values: Values, names: Sequence[str], *first: str, then: Sequence[str] = ()) -> int | None:
    """A size in the places `first`, at the top or in the text part, or under `then`; None where none is said."""
    wanted = (*(f"{place}{name}" for place in (*first, *_PLACES) for name in names), *then)
    said = (values.said(name) or values.defaults.get(name) for name in wanted)
    return next((value for value in said if isinstance(value, int) and 0 < value <= k.MOST_SIZE), None)


def _joined(own: Draft, parts: Sequence[Draft], kind: Any, *, generates: bool) -> Draft:
    """The class's own tensors beside its parts: a language model leads, or the part that holds one in what writes."""
    leads = [part for part in parts if part.kind == "llm"] or [part for part in parts if generates and _caches(part)]
    text = leads[0] if leads else None
    if text is None:
        towers = tuple(part.tower(f"part_{index}") for index, part in enumerate(parts))
        return replace(own, kind=kind, towers=towers)
    rest: Iterable[Draft] = (part for part in parts if part is not text)
    towers = tuple(part.tower(f"part_{index}") for index, part in enumerate(rest))
    return text.beside(*towers, Tower(name="own", layers=own.layers, weights=own.outer), kind=kind)
