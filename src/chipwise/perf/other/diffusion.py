"""Images and videos from text: denoising steps through a transformer or a U-Net, each over latents and text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chipwise.perf.operators import elementwise_bytes
from chipwise.perf.other.encoders import lacking
from chipwise.perf.other.facts import PATCH_NAMES, pipeline_of, stream_of, training_fact
from chipwise.perf.other.layers import attended, multiplied
from chipwise.perf.other.passes import ELEMENT_BYTES, Forward, Item, Passes
from chipwise.perf.work import OTHER_KERNELS

if TYPE_CHECKING:
    from chipwise.model import ModelSpec
    from chipwise.model.spec import Layer, Weight
    from chipwise.perf.other.facts import Pipeline

SECOND = "attn2."
PATCH_EDGES = (1, 2, 4, 8)
CONVOLVED = 9
"""Neighbours that a 3 x 3 convolution takes in."""
SERVED_ACCESSES = 2.0
"""Of a map, by what stands between two convolutions where kernels are fused: it is read and written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """Tokens of one sequence: of the latent image or video, and of the text."""

    image: float
    text: float

    def rows(self, stream: str) -> float:
        """Rows that go through a matrix of a stream."""
        return {"image": self.image, "text": self.text, "both": self.image + self.text, "one": 1.0}[stream]


def diffusion_passes(model: ModelSpec, item: Item) -> Passes:
    """`denoising_steps` passes of the denoiser over every sequence that guidance asks for; one of each to train.

    The text encoders run once and the decoder of the latents once an image; where the file holds only the denoiser
    they are left out, which a note says.

    Raises:
        KnowledgeError: nobody says how the denoiser is run, or its resolution does not follow from its file.
    """
    pipeline = pipeline_of(model)
    if pipeline is None or item.image_px is None or item.denoising_steps is None:
        raise lacking(model, "how its denoiser is run", f"no source that was read describes {model.model_type}")
    if pipeline.video is None and item.frames and item.frames > 1:
        raise lacking(model, "how a video becomes tokens", "its pipeline makes images")
    guided, steps = (1, 1.0) if item.taught else (pipeline.guided_passes, item.denoising_steps)
    sequences = item.batch * guided
    if model.layers:
        step, peak = _transformer_step(model, item, pipeline, sequences)
    else:
        accesses = training_fact("map_accesses") if item.taught else SERVED_ACCESSES
        step, peak = _unet_step(model, item, pipeline, _Run(sequences=sequences, accesses=accesses))
    held = "text encoders and the decoder of the latents are counted in memory, not in time"
    bare = "only the denoiser was read: text encoders and the decoder of the latents are in neither time nor memory"
    notes = (
        f"{guided} sequences a step, {pipeline.text_tokens} text tokens ({pipeline.source})",
        held if model.towers else bare,
    )
    return Passes(unit=item.unit, units=item.batch, forwards=(step.times(steps),), peak_bytes=peak, notes=notes)


def _transformer_step(model: ModelSpec, item: Item, pipeline: Pipeline, sequences: float) -> tuple[Forward, float]:
    image = (float(item.image_px or 0) / pipeline.latent_px / _patch_edge(model, pipeline)) ** 2
    if pipeline.video is not None:
        image *= pipeline.video.patches(item.frames or float(pipeline.video.frames))
    canvas = Canvas(image=image, text=float(pipeline.text_tokens))
    total = Forward(name="denoiser")
    for layer in model.layers:
        total = total.plus(_block(layer, canvas, sequences))
    for weight in model.outer:
        rows = canvas.image if weight.name == "proj_out" else canvas.rows(_outer_stream(weight.name))
        total = total.plus(multiplied(weight, rows=rows * sequences))
    widths = [weight.out_features + weight.in_features for layer in model.layers for weight in layer.weights]
    return total, ELEMENT_BYTES * sequences * (canvas.image + canvas.text) * max(widths)


REFINING = ("attn.", "ff.")
"""Parts of a block that stand outside of the layers: they refine the text."""


def _outer_stream(name: str) -> str:
    return "text" if name.startswith(REFINING) else stream_of(name)


def _block(layer: Layer, canvas: Canvas, sequences: float) -> Forward:
    """A joint block has a stream each for image and text; a single one holds both; a crossing one reads the text.

    A second attention of a joint block sees the image alone, that of a crossing one the text.
    """
    count, total = float(layer.count), Forward(name="denoiser")
    joint = any(stream_of(weight.name) == "text" for weight in layer.weights if weight.name.startswith("attn."))
    second = any(weight.name == f"{SECOND}to_q" for weight in layer.weights)
    for weight in layer.weights:
        stream = stream_of(weight.name)
        if joint and weight.name.startswith(SECOND):
            stream = "image"
        elif not joint and not second and stream != "one":
            stream = "both"
        total = total.plus(multiplied(weight, rows=canvas.rows(stream) * sequences, count=count))
    moved_tokens = canvas.image if second and not joint else canvas.rows("both")
    pairs = [(moved_tokens, moved_tokens)]
    pairs += [(canvas.image, canvas.image if joint else canvas.text)] if second else []
    for tokens, seen in pairs:
        total = total.plus(attended(layer.attention, tokens=tokens, seen=seen, count=count, sequences=sequences))
    hidden = layer.attention.query_heads * layer.attention.head_dim
    moved = float(elementwise_bytes(tokens=moved_tokens * sequences, hidden_size=hidden))
    return total.plus(Forward(name="denoiser", elementwise_bytes=count * moved, kernels=count * (OTHER_KERNELS - 1)))


def _patch_edge(model: ModelSpec, pipeline: Pipeline) -> int:
    """Latents on the edge of a patch: the patch embedding takes `channels * edge^2` values.

    Raises:
        KnowledgeError: the embedding takes no square of the latent's channels.
    """
    taken = next((weight.in_features for weight in model.outer if weight.name in PATCH_NAMES), 0)
    for edge in PATCH_EDGES:
        if taken == pipeline.latent_channels * edge * edge * (pipeline.video.patch_frames if pipeline.video else 1):
            return edge
    raise lacking(model, "the size of its patches", f"its patch embedding takes {taken} values")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Sequences of a step, and how often norms and activations touch a map."""

    sequences: float
    accesses: float


def _unet_step(model: ModelSpec, item: Item, pipeline: Pipeline, run: _Run) -> tuple[Forward, float]:
    """A U-Net in the order of its weights: a downsampler halves the edge, an upsampler doubles it."""
    latents = float(item.image_px or 0) / pipeline.latent_px
    level, total, peak = 0, Forward(name="denoiser"), 0.0
    for weight in _in_order(model):
        level += weight.name == "downsampler"
        level -= weight.name == "upsampler"
        places = (latents / 2**level) ** 2
        total = total.plus(_unet_weight(weight, places, pipeline, run))
        peak = max(peak, ELEMENT_BYTES * run.sequences * places * _width(weight))
    return total, peak


def _in_order(model: ModelSpec) -> list[Weight]:
    found = [weight for weight in model.outer if weight.gemm]
    downs = sum(weight.name == "downsampler" for weight in found)
    if not downs or downs != sum(weight.name == "upsampler" for weight in found):
        raise lacking(model, "the resolution of its blocks", f"{downs} downsamplers do not match its upsamplers")
    return found


def _width(weight: Weight) -> float:
    """Values that go into a place and come out of it: a 3 x 3 convolution shares its inputs with its neighbours."""
    convolves = weight.name.startswith(("conv", "downsampler", "upsampler")) and weight.in_features % CONVOLVED == 0
    return weight.out_features + weight.in_features / (CONVOLVED if convolves else 1)


def _unet_weight(weight: Weight, places: float, pipeline: Pipeline, run: _Run) -> Forward:
    """One matrix of a U-Net over its places, and the attention that its queries start."""
    stream = stream_of(weight.name)
    rows = {"one": 1.0, "text": float(pipeline.text_tokens)}.get(stream, places) * run.sequences
    found = replace(multiplied(weight, rows=rows), moved_bytes=rows * ELEMENT_BYTES * _width(weight))
    seen = {"attn1.to_q": places, f"{SECOND}to_q": float(pipeline.text_tokens)}.get(weight.name)
    if seen is not None:
        looked = 4.0 * weight.out_features * places * seen * run.sequences
        found = replace(found, attention_flops=looked, kernels=found.kernels + 1.0)
    spread = stream not in {"one", "text"}
    moved = run.accesses * ELEMENT_BYTES * rows * weight.out_features if spread else 0.0
    return replace(found, elementwise_bytes=moved)
