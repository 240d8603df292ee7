"""A model known by its tensors alone: names and shapes of a safetensors header or index, without a config.

Shapes give exact parameters; attention and cache cannot be told from them, and the warnings say so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.errors import KnowledgeError
from chipwise.model.draft import NO_ATTENTION
from chipwise.model.spec import Architecture, Layer, ModelSpec, Part, Weight

_INDEXED = re.compile(
    r"^(.*?)\b(layers|layer|blocks|block|h|transformer_blocks|double_blocks|single_blocks)\.(\d+)\.(.+)$"
)
_NO_CACHE = "no config: attention heads and the cache cannot be told from tensor shapes"

DTYPES = {
    "F64": "fp32",
    "F32": "fp32",
    "F16": "fp16",
    "BF16": "bf16",
    "F8_E4M3": "fp8",
    "F8_E5M2": "fp8",
    "I8": "int8",
    "U8": "int8",
}
_NAMES = {"F32": "float32", "F64": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor of a file: its name, shape and stored type."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def params(self) -> int:
        """Elements of the tensor."""
        return math.prod(self.shape)


def from_tensors(tensors: Sequence[Tensor], name: str) -> ModelSpec:
    """A model from all its tensors: equal layers are grouped, everything else is outer."""
    layers, outer = _grouped(tensors)
    common = max(DTYPES, key=lambda dtype: sum(t.params for t in tensors if t.dtype == dtype))
    names = [tensor.name for tensor in tensors]
    return ModelSpec(
        name=name,
        model_type="tensors",
        architecture=class_by_names(names),
        layers=layers,
        outer=outer,
        hidden_size=max((tensor.shape[-1] for tensor in tensors if len(tensor.shape) > 1), default=0),
        vocab_size=0,
        max_context_tokens=None,
        dtype=_NAMES.get(common),
        params_source="safetensors",
        warnings=(_NO_CACHE,),
    )


def _grouped(tensors: Sequence[Tensor]) -> tuple[tuple[Layer, ...], tuple[Weight, ...]]:
    outer: list[Weight] = []
    by_layer: dict[tuple[str, int], list[Weight]] = {}
    for tensor in tensors:
        found = _INDEXED.match(tensor.name)
        if found is None:
            outer.append(_weight(tensor, tensor.name))
            continue
        prefix, kind, index, leaf = found.groups()
        by_layer.setdefault((prefix + kind, int(index)), []).append(_weight(tensor, leaf))
    runs: dict[tuple[Weight, ...], list[int]] = {}
    for (_, index), weights in by_layer.items():
        runs.setdefault(tuple(sorted(weights, key=lambda weight: weight.name)), []).append(index)
    layers = tuple(
        Layer(count=len(where), attention=NO_ATTENTION, weights=weights, indices=tuple(where))
        for weights, where in runs.items()
    )
    return layers, tuple(outer)


def _weight(tensor: Tensor, leaf: str) -> Weight:
    is_matrix = len(tensor.shape) > 1
    rows = tensor.shape[0] if tensor.shape else 1
    return Weight(
        name=leaf.removesuffix(".weight"),
        part=_part(leaf, is_matrix=is_matrix),
        out_features=rows if is_matrix else tensor.params,
        in_features=tensor.params // rows if is_matrix and rows else 1,
        gemm=is_matrix and "embed" not in leaf,
        quantisable=is_matrix,
        format=DTYPES.get(tensor.dtype, "bf16"),
    )


_PARTS: tuple[tuple[str, Part], ...] = (
    ("shared_expert", "shared-expert"),
    ("experts", "expert"),
    ("norm", "norm"),
    ("ln_", "norm"),
    ("lm_head", "head"),
    ("embed", "embedding"),
    ("attn", "attention"),
    ("attention", "attention"),
    ("mlp", "mlp"),
    ("ffn", "mlp"),
    ("feed_forward", "mlp"),
)


def _part(leaf: str, *, is_matrix: bool) -> Part:
    found: Part = next((part for word, part in _PARTS if word in leaf), "other")
    return "norm" if found == "other" and not is_matrix else found


_DIFFUSION = (
    "transformer_blocks.",
    "double_blocks.",
    "single_blocks.",
    "down_blocks.",
    "diffusion_model.",
    "joint_blocks.",
)
_SEEING = ("visual.", "vision_tower.", "vision_model.", "image_encoder.")


def class_by_names(names: Sequence[str]) -> Architecture:
    """What a set of tensor names belongs to.

    >>> class_by_names(["encoder.block.0.layer.0.SelfAttention.q.weight", "shared.weight"])
    'encoder'
    """

    def has(*parts: str) -> bool:
        return any(part in name for name in names for part in parts)

    text = has(*_TEXT)
    if has(*_SEEING) and not has(*_DIFFUSION):
        return "vision-language" if text or has("text_model.") else "vision"
    if text and not has(*_DIFFUSION):
        return "moe-llm" if has("experts") else "dense-llm"
    return next((kind for kind, parts in _SIGNS if all(has(*part) for part in parts)), "cnn")


_TEXT = ("lm_head", "model.layers.", "language_model.", "transformer.h.", "backbone.layers.", "tok_embeddings")
# Every group of parts must be found among the names.
_SIGNS: tuple[tuple[Architecture, tuple[tuple[str, ...], ...]], ...] = (
    ("diffusion", (_DIFFUSION,)),
    ("dense-llm", (("decoder.",), ("encoder.",))),
    ("vision", (("patch_embed",),)),
    ("audio", (("feature_extractor.conv_layers", "conv1.weight"), ("encoder.layers.",))),
    ("encoder", (("encoder.", "embeddings.word_embeddings"),)),
)


def from_index(index: Mapping[str, object], name: str) -> ModelSpec:
    """A model from a weight index: the total size, the names; two bytes a parameter where it does not count them."""
    metadata = index.get("metadata")
    names = index.get("weight_map")
    listed = sorted(key for key in names if isinstance(key, str)) if isinstance(names, Mapping) else []
    counts = metadata if isinstance(metadata, Mapping) else {}
    stated = counts.get("total_parameters")
    size = counts.get("total_size")
    notes = [_NO_CACHE]
    if isinstance(stated, int) and stated > 0:
        params = stated
    elif isinstance(size, int | float) and 0 < size < 2**60:
        params = int(size) // 2
        notes.append(f"the index states {int(size)} bytes: counted at 2 bytes a parameter")
    else:
        raise missing_size()
    return ModelSpec(
        name=name,
        model_type="tensors",
        architecture=class_by_names(listed),
        layers=(),
        outer=(Weight(name="all", part="other", out_features=params, in_features=1),),
        hidden_size=0,
        vocab_size=0,
        max_context_tokens=None,
        dtype=None,
        params_source="safetensors",
        warnings=tuple(notes),
    )


def missing_size() -> KnowledgeError:
    """The error for an index without a total."""
    return KnowledgeError(
        "the index does not say metadata.total_size",
        why="the size of the model is that number",
        fix="give the config.json, or a safetensors file",
    )
