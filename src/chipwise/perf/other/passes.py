"""What one request makes a device do: forward passes, each with its FLOPs, its weights and what it moves."""

from __future__ import annotations

from dataclasses import dataclass, replace

ELEMENT_BYTES = 2.0
"""Activations are held in 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One request: `batch` items of it (images, candidates, rows) of the sizes stated; None: not stated.

    `taught`: items to train on. A denoiser sees each at one level of noise and without guidance, a decoder all tokens
    of the known answer at once, and a convolution's norm is not folded into it.
    """

    preset: str
    unit: str
    batch: float = 1.0
    tokens: float | None = None
    image_px: float | None = None
    denoising_steps: float | None = None
    frames: float | None = None
    audio_s: float | None = None
    taught: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """One kind of forward pass of one request.

    `weights` are elements read once a pass, whatever the batch; everything else is of one request. A `graphed` pass
    is replayed without a gap between its kernels: decoding is, a first pass is not.
    """

    name: str
    passes: float = 1.0
    gemm_flops: float = 0.0
    attention_flops: float = 0.0
    weights: float = 0.0
    moved_bytes: float = 0.0
    elementwise_bytes: float = 0.0
    kernels: float = 0.0
    graphed: bool = False

    def times(self, passes: float) -> Forward:
        """The same pass, so many times."""
        return replace(self, passes=self.passes * passes)

    def plus(self, other: Forward) -> Forward:
        """Both as one pass; the name and the number of passes of this one."""
        return replace(
            self,
            gemm_flops=self.gemm_flops + other.gemm_flops,
            attention_flops=self.attention_flops + other.attention_flops,
            weights=self.weights + other.weights,
            moved_bytes=self.moved_bytes + other.moved_bytes,
            elementwise_bytes=self.elementwise_bytes + other.elementwise_bytes,
            kernels=self.kernels + other.kernels,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """All that one request does.

    `units` counts what throughput counts (images, seconds of audio, …) in a request; `peak_bytes` is what its widest
    operation holds, `cache_bytes` what it keeps until it is answered, `input_bytes` what comes in over the network
    (0 where it is next to nothing); `notes` say what was assumed or left out.
    """

    unit: str
    units: float
    forwards: tuple[Forward, ...]
    peak_bytes: float
    cache_bytes: float = 0.0
    input_bytes: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def held_bytes(self) -> float:
        """What a request takes of a device's memory."""
        return self.peak_bytes + self.cache_bytes

    @property
    def flops(self) -> float:
        """FLOPs of a request.

        >>> one = Forward(name="vit", gemm_flops=3.0, attention_flops=1.0, passes=2.0)
        >>> Passes(unit="image", units=1.0, forwards=(one,), peak_bytes=0.0).flops
        8.0
        """
        return sum(one.passes * (one.gemm_flops + one.attention_flops) for one in self.forwards)
