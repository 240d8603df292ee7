"""YOLO and RT-DETR as Ultralytics describes them in YAML: a list of modules, scaled in depth and width.

Every module is a function of its input channels and arguments that gives (output channels, weights).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.errors import KnowledgeError
from chipwise.model import keys as k
from chipwise.model.blocks import Weights, conv, matrix, norm, table
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys

_MOST_MODULES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    name: str
    depth: float
    width: float
    most: float

    def channels(self, value: int) -> int:
        """Scaled channels, a multiple of 8."""
        return math.ceil(min(value, self.most) * self.width / 8) * 8

    def repeats(self, value: int) -> int:
        """Scaled repeats, at least one."""
        return max(round(min(value, _MOST_MODULES + 1) * self.depth), 1) if value > 1 else value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One module: channels in, channels out (scaled), repeats, the rest of its arguments, the scale."""

    inside: int
    out: int
    repeats: int
    rest: Sequence[Any]
    scale: _Scale


def _conv(inside: int, out: int, kernel: int = 1, groups: int = 1) -> Weights:
    return (*conv("conv", (out, inside // groups), kernel**2, bias=False), *norm("bn", out, "layer"))


def _number(values: Sequence[Any], index: int, default: int) -> int:
    value = values[index] if index < len(values) else default
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _flag(values: Sequence[Any], index: int) -> bool:
    return index < len(values) and values[index] is True


def _plain(call: _Call) -> Weights:
    return _conv(call.inside, call.out, _number(call.rest, 0, 1))


def _depthwise(call: _Call) -> Weights:
    return _conv(call.inside, call.out, _number(call.rest, 0, 1), math.gcd(call.inside, call.out))


def _bottleneck(width: int, kernels: tuple[int, int], share: float = 1.0) -> Weights:
    inner = int(width * share)
    return (*_conv(width, inner, kernels[0]), *_conv(inner, width, kernels[1]))


def _split(call: _Call, inner: int, each: Weights) -> Weights:
    joined = (2 + call.repeats) * inner
    return (*_conv(call.inside, 2 * inner), *_conv(joined, call.out), *(each * call.repeats))


def _c2f(call: _Call) -> Weights:
    inner = call.out // 2
    return _split(call, inner, _bottleneck(inner, (3, 3)))


def _c3(call: _Call) -> Weights:
    return _c3_of(call.inside, call.out, call.repeats, (1, 3))


def _c3_of(inside: int, out: int, repeats: int, kernels: tuple[int, int]) -> Weights:
    inner = out // 2
    return (
        *(_conv(inside, inner) * 2),
        *_conv(2 * inner, out),
        *(_bottleneck(inner, kernels) * repeats),
    )


def _c3k2(call: _Call) -> Weights:
    share = call.rest[1] if len(call.rest) > 1 and isinstance(call.rest[1], float) else 0.5
    inner = int(call.out * share)
    deep = _flag(call.rest, 0) or call.scale.name in "mlx"
    each = _c3_of(inner, inner, 2, (3, 3)) if deep else _bottleneck(inner, (3, 3), 0.5)
    return _split(call, inner, each)


def _c2psa(call: _Call) -> Weights:
    width = call.inside // 2
    heads = max(width // 64, 1)
    keys = int(width // heads * 0.5) * heads
    block = (
        *_conv(width, width + 2 * keys),
        *_conv(width, width),
        *_conv(width, width, 3, width),
        *_conv(width, 2 * width),
        *_conv(2 * width, width),
    )
    return (*_conv(call.inside, 2 * width), *_conv(2 * width, call.inside), *(block * call.repeats))


def _sppf(call: _Call) -> Weights:
    inner = call.inside // 2
    return (*_conv(call.inside, inner), *_conv(4 * inner, call.out))


def _rep_c3(call: _Call) -> Weights:
    width = call.out
    each = (*_conv(width, width, 3), *_conv(width, width))
    return (*(_conv(call.inside, width) * 2), *(each * call.repeats))


def _hg_stem(inside: int, middle: int, out: int) -> Weights:
    half = middle // 2
    return (
        *_conv(inside, middle, 3),
        *_conv(middle, half, 2),
        *_conv(half, middle, 2),
        *_conv(2 * middle, middle, 3),
        *_conv(middle, out),
    )


def _hg_block(inside: int, args: Sequence[Any], repeats: int) -> Weights:
    middle, out, kernel, light = _number(args, 0, 0), _number(args, 1, 0), _number(args, 2, 3), _flag(args, 3)
    weights: Weights = ()
    before = inside
    for _ in range(repeats):
        each = _conv(before, middle, kernel)
        weights += (*_conv(before, middle), *_conv(middle, middle, kernel, middle)) if light else each
        before = middle
    return (*weights, *_conv(inside + repeats * middle, out // 2), *_conv(out // 2, out))


def _aifi(width: int, inner: int) -> Weights:
    return (
        *matrix("ma.in_proj", (3 * width, width), "attention", bias=True),
        *matrix("ma.out_proj", (width, width), "attention", bias=True),
        *matrix("fc1", (inner, width), "mlp", bias=True),
        *matrix("fc2", (width, inner), "mlp", bias=True),
        *norm("norm1", width, "layer"),
        *norm("norm2", width, "layer"),
    )


def _detect(classes: int, widths: Sequence[int], *, legacy: bool) -> Weights:
    bins = 16
    boxes, names = max(bins, widths[0] // 4, 64), max(widths[0], min(classes, 100))
    weights: Weights = conv("dfl", (1, bins), 1, bias=False)
    for width in widths:
        weights += (*_conv(width, boxes, 3), *_conv(boxes, boxes, 3), *conv("box", (4 * bins, boxes), 1))
        if legacy:
            weights += (*_conv(width, names, 3), *_conv(names, names, 3))
        else:
            weights += (*_conv(width, width, 3, width), *_conv(width, names))
            weights += (*_conv(names, names, 3, names), *_conv(names, names))
        weights += conv("class", (classes, names), 1, part="head")
    return weights


def _mlp(width: int, out: int, depth: int) -> Weights:
    inner = matrix("mlp", (width, width), "other", bias=True) * (depth - 1)
    return (*inner, *matrix("mlp.out", (out, width), "head", bias=True))


def _rtdetr_decoder(classes: int, widths: Sequence[int]) -> Weights:
    width, layers, points, inner = 256, 6, 8 * len(widths) * 4, 1024
    layer = (
        *_aifi(width, inner),
        *matrix("cross.sampling_offsets", (2 * points, width), "attention", bias=True),
        *matrix("cross.attention_weights", (points, width), "attention", bias=True),
        *(matrix("cross.proj", (width, width), "attention", bias=True) * 2),
        *norm("norm3", width, "layer"),
    )
    score = matrix("score_head", (classes, width), "head", bias=True)
    return (
        *(weight for each in widths for weight in _conv(each, width)),
        *(layer * layers),
        table("denoising_class_embed", classes, width),
        *matrix("query_pos_head.0", (2 * width, 4), "other", bias=True),
        *matrix("query_pos_head.1", (width, 2 * width), "other", bias=True),
        *matrix("enc_output", (width, width), "other", bias=True),
        *norm("enc_output.norm", width, "layer"),
        *(score * (layers + 1)),
        *(_mlp(width, 4, 3) * (layers + 1)),
    )


_SCALED: dict[str, Callable[[_Call], Weights]] = {
    "Conv": _plain,
    "DWConv": _depthwise,
    "C2f": _c2f,
    "C3": _c3,
    "C3k2": _c3k2,
    "C2PSA": _c2psa,
    "SPPF": _sppf,
    "RepC3": _rep_c3,
}
_REPEATED = frozenset({"C2f", "C3", "C3k2", "C2PSA", "RepC3"})


def yolo(keys: Keys) -> Draft:
    """The network of an Ultralytics YAML at the scale its name says, else at its first scale (said in a note)."""
    rows = [*keys.items("backbone"), *keys.items("head")]
    if not rows or len(rows) > _MOST_MODULES:
        raise keys.missing("backbone and head")
    scale = _scale(keys)
    classes = keys.size("nc", default=80)
    widths: list[int] = []
    weights: Weights = ()
    legacy = not any(isinstance(row, list) and len(row) > 2 and row[2] == "C3k2" for row in rows)
    for row in rows:
        out, more = _module(keys, row, widths, scale, (classes, legacy))
        widths.append(out)
        weights += more
    return Draft(kind="cnn", outer=weights, hidden_size=max(widths))


def _scale(keys: Keys) -> _Scale:
    scales = keys.mapping("scales")
    if not scales:
        return _Scale(
            name="-",
            depth=keys.number("depth_multiple", default=1.0),
            width=keys.number("width_multiple", default=1.0),
            most=math.inf,
        )
    wanted = keys.text("scale")
    name = wanted if wanted in scales else next(iter(scales))
    if not wanted and len(scales) > 1:
        keys.notes.append(f"the file holds scales {', '.join(map(str, scales))}: counted at {name}")
    values = scales[name]
    if not isinstance(values, list) or len(values) < 3 or not all(_is_scale(value) for value in values):
        raise keys.wrong("scales", values, "depth, width and most channels")
    return _Scale(name=str(name), depth=values[0], width=values[1], most=values[2])


def _is_scale(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= k.MOST_SIZE


def _module(keys: Keys, row: object, widths: list[int], scale: _Scale, head: tuple[int, bool]) -> tuple[int, Weights]:
    if not isinstance(row, list) or len(row) != 4 or not isinstance(row[3], list):
        raise keys.wrong("a module", row, "[from, repeats, module, arguments]")
    source, repeats, name, args = row
    sources = source if isinstance(source, list) else [source]
    inputs = [_width(keys, widths, index) for index in sources]
    repeats = scale.repeats(repeats) if isinstance(repeats, int) else 1
    if repeats > _MOST_MODULES:
        raise keys.wrong("repeats", row[1], f"at most {_MOST_MODULES} modules")
    if isinstance(name, str) and name in _SCALED:
        out = scale.channels(_number(args, 0, 0))
        call = _Call(inside=inputs[0], out=out, repeats=repeats, rest=args[1:], scale=scale)
        copies = 1 if name in _REPEATED else repeats
        return out, _SCALED[name](call) * copies
    if not isinstance(name, str) or name not in _UNSCALED:
        raise _unknown_module(name)
    fixed = _Fixed(inputs=inputs, args=args, repeats=repeats, classes=head[0], legacy=head[1])
    return _UNSCALED[name](fixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixed:
    """A module whose channels are not scaled: all inputs, arguments, repeats, classes, the older kind of head."""

    inputs: list[int]
    args: list[Any]
    repeats: int
    classes: int
    legacy: bool


_UNSCALED: dict[str, Callable[[_Fixed], tuple[int, Weights]]] = {
    "Concat": lambda it: (sum(it.inputs), ()),
    "nn.Upsample": lambda it: (it.inputs[0], ()),
    "HGStem": lambda it: (
        _number(it.args, 1, 0),
        _hg_stem(it.inputs[0], _number(it.args, 0, 0), _number(it.args, 1, 0)),
    ),
    "HGBlock": lambda it: (_number(it.args, 1, 0), _hg_block(it.inputs[0], it.args, it.repeats)),
    "AIFI": lambda it: (it.inputs[0], _aifi(it.inputs[0], _number(it.args, 0, 2048))),
    "Detect": lambda it: (it.inputs[0], _detect(it.classes, it.inputs, legacy=it.legacy)),
    "RTDETRDecoder": lambda it: (it.inputs[0], _rtdetr_decoder(it.classes, it.inputs)),
}


def _unknown_module(name: object) -> KnowledgeError:
    return KnowledgeError(
        f"the module {str(name)[:60]!r} is not one we can read",
        why="its weights are not described here, and a guess at its size is no answer",
        fix="give the weights' safetensors file, or a network of Conv, C2f, C3, C3k2, C2PSA, SPPF and Detect",
    )


def _width(keys: Keys, widths: list[int], index: object) -> int:
    if not widths and index == -1:
        return keys.size("ch", default=3)
    if not isinstance(index, int) or not -len(widths) <= index < len(widths):
        raise keys.wrong("from", index, "the number of an earlier module")
    return widths[index]


READERS = {"yolo": yolo}
