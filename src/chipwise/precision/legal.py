"""What a checkpoint may legally become: never more bits, each step under a condition, at a stated loss.

`data/legal.csv` holds the steps. The losses are published claims that nobody has verified for this model:
they are kept as the guide's policy and carry their verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from chipwise.errors import InputError, UnknownNameError
from chipwise.facts import read_rows
from chipwise.model import ModelSpec
from chipwise.precision.formats import DATA, Format, canonical, format_facts

COLUMNS = (
    "from", "architectures", "to", "use", "vendors", "condition", "quality_loss", "verdict", "calibration_data",
    "source",
    "where", "read_on",
)  # fmt: skip
KV_COLUMNS = (
    "from",
    "to",
    "condition",
    "quality_loss",
    "verdict",
    "calibration_data",
    "source",
    "where",
    "read_on",
)
_LLM = frozenset({"dense-llm", "moe-llm", "vision-language"})
_AS_STORED = "="


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionOption:
    """One precision a checkpoint may be used at. `verdict` says how far the stated loss has been checked."""

    format: str
    condition: str
    quality_loss: str | None
    verdict: str
    calibration_data: bool
    use: frozenset[str]
    """`serve`, `train`: what the option is for."""
    vendors: frozenset[str] = frozenset({"*"})
    """Chip vendors with stacks that take the step; `*` is any."""
    source: str

    def as_json(self) -> dict[str, object]:
        """The entry of `precisions` that `chipwise model --json` prints."""
        loss = f"{self.quality_loss} ({self.verdict})" if self.quality_loss else None
        return {
            "format": self.format,
            "condition": self.condition,
            "quality_loss": loss,
            "calibration_data": self.calibration_data,
            "source": self.source,
        }


def stored_format(model: ModelSpec) -> Format:
    """The format most of the model's weights are stored in: its quantisation's, else its dtype.

    Where the checkpoint states neither, or a name nobody knows, the format of most matrices stands in.
    """
    stated = model.quantisation.weight_format if model.quantisation else model.dtype
    if stated is not None:
        try:
            return format_facts(stated)
        except UnknownNameError:
            pass
    return format_facts(_commonest(model))


def _commonest(model: ModelSpec) -> str:
    params: dict[str, int] = {}
    for weight, copies in model.all_weights():
        if weight.gemm:
            params[weight.format] = params.get(weight.format, 0) + weight.params * copies
    return max(params, key=lambda name: params[name]) if params else "bf16"


def legal_precisions(model: ModelSpec) -> tuple[PrecisionOption, ...]:
    """Every precision the checkpoint may be used at, the stored one first; never one of more bits.

    16 and 32 bits may be quantised after training; FP8 stays or goes to 4 bits at a cumulative loss; what is
    at 4 bits or in GGUF already is used as it is.

    Source: the rows of `data/legal.csv`; each option carries its own.
    """
    stored = stored_format(model)
    options = (_option(row, stored) for row in _steps() if _applies(row, stored, model))
    return tuple(option for option in options if format_facts(option.format).bits <= stored.bits)


def default_option(model: ModelSpec) -> PrecisionOption:
    """The precision the model is used at when nothing is said: as stored, but 32-bit language models at 16 bits.

    Serving engines cast FP32 checkpoints of language models to 16 bits by themselves (`--dtype auto`).

    Source: vLLM and SGLang, argument `--dtype`, value `auto`.
    """
    options = legal_precisions(model)
    wide = format_facts(options[0].format).name == "fp32" and model.architecture in _LLM
    return next((option for option in options if wide and option.format == "bf16"), options[0])


def option_for(model: ModelSpec, precision: str) -> PrecisionOption:
    """The option by which the checkpoint gets to `precision`.

    Formats of one family and width count as one another (an FP8 checkpoint with block scales answers to
    `fp8`).

    Raises:
        UnknownNameError: no such format.
        InputError: the checkpoint may not become that; says what it may.
    """
    wanted = format_facts(precision)
    options = legal_precisions(model)
    exact = [option for option in options if option.format == wanted.name]
    like = [option for option in options if _alike(format_facts(option.format), wanted)]
    if exact or like:
        return (exact or like)[0]
    stored = stored_format(model)
    why = "it has more bits than the checkpoint" if wanted.bits > stored.bits else "no known step leads there"
    raise InputError(
        f"{model.name} ({stored.name}) cannot be used at {wanted.name}",
        why=why,
        fix="choose one of " + ", ".join(option.format for option in options),
    )


def widened_fallback(model: ModelSpec) -> PrecisionOption | None:
    """The bf16 copy of a quantised checkpoint, for stacks that cannot hold its format; None for others.

    It gains no precision and costs the memory of 16 bits, so it is no legal choice of its own: only what is
    left where a chip or an engine takes nothing else (gpt-oss on Trainium2, DeepSeek-V3 on its contributed
    port).
    """
    stored = stored_format(model)
    if stored.bits >= format_facts("bf16").bits or stored.family == "gguf":
        return None
    return PrecisionOption(
        format="bf16",
        condition=f"widened from {stored.name}: more memory, no more precision; where nothing else runs",
        quality_loss="none",
        verdict="exact up to rounding of the scales",
        calibration_data=False,
        use=frozenset({"serve"}),
        source="aws-neuron/aws-neuron-sdk@81ce03ae261e: vllm-neuron/docs/model-recipes/gpt-oss.md",
    )


def legal_kv_formats(model: ModelSpec) -> tuple[PrecisionOption, ...]:
    """What the model's cache may be kept in, the default first: what the checkpoint states, else 16 bits."""
    base = model.quantisation.kv_format if model.quantisation and model.quantisation.kv_format else None
    default = canonical(base) if base else _cache_default(model)
    options = (_kv_option(row, default) for row in _kv_steps() if row["from"] in {"*", default})
    return tuple(option for option in options if format_facts(option.format).bits <= format_facts(default).bits)


def _cache_default(model: ModelSpec) -> str:
    dtype = canonical(model.dtype) if model.dtype else "bf16"
    return dtype if dtype in {"fp16", "bf16"} else "bf16"


def _alike(one: Format, other: Format) -> bool:
    return one.family == other.family and one.bits == other.bits


def _applies(row: Mapping[str, str], stored: Format, model: ModelSpec) -> bool:
    group = "llm" if model.architecture in _LLM else model.architecture
    return row["from"] == stored.family and bool({"*", group} & set(row["architectures"].split()))


def _option(row: Mapping[str, str], stored: Format) -> PrecisionOption:
    return PrecisionOption(
        format=stored.name if row["to"] == _AS_STORED else row["to"],
        condition=row["condition"],
        quality_loss=row["quality_loss"] or None,
        verdict=row["verdict"],
        calibration_data=row["calibration_data"] == "yes",
        use=frozenset(row["use"].split()),
        vendors=frozenset(row["vendors"].split()),
        source=f"{row['source']}: {row['where']}",
    )


def _kv_option(row: Mapping[str, str], default: str) -> PrecisionOption:
    return _option(
        {**row, "use": "serve", "vendors": "*", "to": default if row["to"] == _AS_STORED else row["to"]},
        format_facts(default),
    )


@cache
def _steps() -> tuple[Mapping[str, str], ...]:
    return tuple(dict(zip(COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "legal.csv", COLUMNS))


@cache
def _kv_steps() -> tuple[Mapping[str, str], ...]:
    return tuple(dict(zip(KV_COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "legal_kv.csv", KV_COLUMNS))
