"""What a model's file does not say and its pipeline does: text tokens, guidance, frame rates, what streams exist."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.facts import read_rows

if TYPE_CHECKING:
    from chipwise.model import ModelSpec

DATA = Path(__file__).parents[1] / "data"
PIPELINE_COLUMNS = (
    "model_types", "holds", "takes", "latent_px", "latent_channels", "text_tokens", "guided_passes", "denoising_steps",
    "frames", "latent_frames", "patch_frames", "image_px", "kind", "source", "where", "read_on",
)  # fmt: skip
ENGINE_COLUMNS = ("preset", "model_types", "engine", "why")
STREAM_COLUMNS = ("weight", "rows", "why")
PATCH_NAMES = ("pos_embed.proj", "x_embedder", "x_embedder.proj", "patch_embedding", "patch_embed.proj", "proj_in")
"""How denoisers name the matrix that takes a patch of latents."""
AUDIO_COLUMNS = (
    "model_types", "frames_per_s", "padded_s", "answer_tokens_per_s", "kind", "source", "where", "read_on",
)  # fmt: skip
CONVOLUTION_COLUMNS = (
    "model_types", "backbone_params", "flops", "image_px", "map_elements", "kind", "source", "where", "read_on",
)  # fmt: skip
TRAINING_COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")
SPEECH_COLUMNS = ("model_types", "tokens_per_s", "head", "head_passes", "kind", "source", "where", "read_on")
PROCESSOR_COLUMNS = (
    "families", "processor", "architecture", "vcpus_per_core", "hertz", "fp32_flops_per_cycle", "cores_per_socket",
    "socket_bytes_per_s", "kind", "source", "where", "read_on",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """How a denoiser is run: pixels of an edge per latent, text tokens, sequences a step, steps by default.

    `video` says how frames become latents; None where it makes images.
    """

    latent_px: int
    latent_channels: int
    text_tokens: int
    guided_passes: int
    denoising_steps: int
    source: str
    video: Video | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """Frames and edge of the pixels by default; frames that one latent holds, and latents that one patch holds."""

    frames: int
    image_px: int
    latent_frames: int
    patch_frames: int

    def patches(self, frames: float) -> float:
        """Patches along time: the first frame is a latent of its own, as are every `latent_frames` after it.

        >>> Video(frames=81, image_px=632, latent_frames=4, patch_frames=1).patches(81.0)
        21.0
        """
        return float(math.ceil((1.0 + math.ceil((frames - 1.0) / self.latent_frames)) / self.patch_frames))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """How an audio model takes sound: encoder frames a second, the window it is padded to, tokens answered a second."""

    frames_per_s: float
    padded_s: float | None
    answer_tokens_per_s: float
    kind: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """How a model speaks: tokens a second of sound, and passes of a `head` (a tower's name) for every token."""

    tokens_per_s: float
    head: str
    head_passes: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolutions:
    """Published FLOPs of a convolutional network at one size of image, and the elements that its convolutions give.

    `counted`: whether somebody counted these, rather than that a network like others was taken.
    """

    flops: float
    image_px: float
    map_elements: float
    counted: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """One processor as a vCPU of it sees it: FP32 FLOPs a second and its even share of the socket's bandwidth."""

    name: str
    architecture: str
    flops_per_s_per_vcpu: float
    bytes_per_s_per_vcpu: float
    source: str


@cache
def _table(name: str, columns: tuple[str, ...]) -> tuple[Mapping[str, str], ...]:
    return tuple(dict(zip(columns, row, strict=True)) for _, row in read_rows(DATA / name, columns))


def pipeline_of(model: ModelSpec) -> Pipeline | None:
    """The pipeline of a denoiser; None where no source that was read says how it is run."""
    held = {weight.name for weight, _ in model.all_weights()}
    taken = {str(weight.in_features) for weight in model.outer if weight.name in PATCH_NAMES}
    for row in _table("other_pipelines.csv", PIPELINE_COLUMNS):
        known = any(_like(model.model_type, pattern) for pattern in row["model_types"].split())
        held_too = not row["holds"] or any(fnmatchcase(name, row["holds"]) for name in held)
        if known and held_too and (not row["takes"] or row["takes"] in taken):
            return Pipeline(
                latent_px=int(row["latent_px"]),
                latent_channels=int(row["latent_channels"]),
                text_tokens=int(row["text_tokens"]),
                guided_passes=int(row["guided_passes"]),
                denoising_steps=int(row["denoising_steps"]),
                source=f"{row['source']}: {row['where']}",
                video=_video(row),
            )
    return None


def _video(row: Mapping[str, str]) -> Video | None:
    if not row["frames"]:
        return None
    return Video(**{name: int(row[name]) for name in ("frames", "image_px", "latent_frames", "patch_frames")})


def _like(model_type: str, pattern: str) -> bool:
    """A pipeline (`StableDiffusion3Pipeline`) is known by the class of its denoiser or by its own name."""
    return fnmatchcase(model_type.lower(), pattern.lower())


def convolutions_of(model: ModelSpec) -> Convolutions | None:
    """What is published of a network that has the same class and, heads left out or in, the same parameters.

    A file of weights says neither strides nor resolutions; equal parameters to the last one are the same network.
    """
    heads = sum(weight.params for weight in model.outer if weight.part == "head" or "classifier" in weight.name)
    counts = {model.params_total, model.params_total - heads}
    for row in _table("other_convolutions.csv", CONVOLUTION_COLUMNS):
        if model.model_type in row["model_types"].split() and int(row["backbone_params"]) in counts:
            source = f"{row['source']}: {row['where']}"
            flops = float(row["flops"])
            return Convolutions(
                flops=flops,
                image_px=float(row["image_px"]),
                map_elements=float(row["map_elements"] or flops * training_fact("map_elements_per_flop")),
                counted=bool(row["map_elements"]),
                source=source,
            )
    return None


def training_fact(key: str) -> float:
    """What training adds to the passes of a model that is no language model.

    >>> training_fact("map_accesses")
    5.0
    """
    return {row["key"]: float(row["value"]) for row in _table("other_training.csv", TRAINING_COLUMNS)}[key]


def stream_of(weight: str) -> str:
    """What goes through a matrix of a denoiser: `image`, `text`, `both` tokens, or `one` vector a pass.

    >>> stream_of("attn.add_q_proj"), stream_of("norm1.linear"), stream_of("attn.to_q"), stream_of("proj_mlp")
    ('text', 'one', 'image', 'both')
    """
    rows = _table("other_streams.csv", STREAM_COLUMNS)
    return next(row["rows"] for row in rows if fnmatchcase(weight, row["weight"]))


def sound_of(model_type: str) -> Sound | None:
    """How an audio model takes sound; None where no source that was read says so.

    >>> sound_of("whisper").padded_s, sound_of("wav2vec2").padded_s
    (30.0, None)
    """
    for row in _table("other_audio.csv", AUDIO_COLUMNS):
        if model_type.lower() in row["model_types"].split():
            return Sound(
                frames_per_s=float(row["frames_per_s"]),
                padded_s=float(row["padded_s"]) if row["padded_s"] else None,
                answer_tokens_per_s=float(row["answer_tokens_per_s"]),
                kind=row["kind"],
                source=f"{row['source']}: {row['where']}",
            )
    return None


def speech_of(model_type: str) -> Speech | None:
    """How a model speaks; None where no source that was read says so.

    >>> speech_of("vibevoice").tokens_per_s, speech_of("whisper")
    (7.5, None)
    """
    for row in _table("other_speech.csv", SPEECH_COLUMNS):
        if model_type.lower() in row["model_types"].split():
            return Speech(
                tokens_per_s=float(row["tokens_per_s"]),
                head=row["head"],
                head_passes=float(row["head_passes"]),
                source=f"{row['source']}: {row['where']}",
            )
    return None


@cache
def processor_of(family: str) -> Processor | None:
    """The processor of a CPU family; None where no source that was read gives its rates.

    >>> graviton = processor_of("c8g")
    >>> round(graviton.flops_per_s_per_vcpu / 1e9, 1), round(graviton.bytes_per_s_per_vcpu / 1e9, 2)
    (86.4, 5.6)
    """
    for row in _table("other_processors.csv", PROCESSOR_COLUMNS):
        if family in row["families"].split():
            per_core = float(row["vcpus_per_core"])
            return Processor(
                name=row["processor"],
                architecture=row["architecture"],
                flops_per_s_per_vcpu=float(row["hertz"]) * float(row["fp32_flops_per_cycle"]) / per_core,
                bytes_per_s_per_vcpu=float(row["socket_bytes_per_s"]) / float(row["cores_per_socket"]) / per_core,
                source=f"{row['source']}: {row['where']}",
            )
    return None


def engine_for(preset: str, model_type: str) -> str:
    """The engine that serves such a request on a GPU unless one is named.

    >>> engine_for("embed", "bert"), engine_for("transcribe", "wav2vec2")
    ('vllm', 'transformers')
    """
    return next(
        row["engine"]
        for row in _table("other_engines.csv", ENGINE_COLUMNS)
        if row["preset"] == preset and (row["model_types"] == "*" or model_type in row["model_types"].split())
    )
