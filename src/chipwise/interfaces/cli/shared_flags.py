"""Flags that several commands have: the split, the engine's settings, the training set-up, the lengths."""

from __future__ import annotations

from chipwise.interfaces.cli import completion
from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.flags import Flag
from chipwise.interfaces.cli.parsers import choice, fraction, positive, tokens, whole_or_zero
from chipwise.units import parse_count, parse_seconds

MODEL = Argument(field="model", names=completion.models, files=True)

COUNT = positive(parse_count)
TOKENS = positive(tokens)

SPLIT = tuple(
    Flag(name=f"--{name}", fields=(f"split.{name}",), parse=COUNT, metavar="N", help=about)
    for name, about in {
        "tp": "Tensor parallelism: devices that share every layer.",
        "pp": "Pipeline parallelism: stages of layers.",
        "ep": "Expert parallelism: devices that share the experts.",
        "dp": "Data-parallel attention around shared experts (never copies).",
        "cp": "Context parallelism: devices that share a sequence.",
    }.items()
)

ENGINES = ("vllm", "sglang", "tensorrt-llm", "neuron", "vllm-neuron", "nxd-inference")
"""Serving engines that can be asked for; `neuron` is whichever part of the Neuron SDK runs the model."""

ENGINE = Flag(
    name="--engine",
    fields=("engine.engine",),
    parse=choice(*ENGINES),
    metavar="|".join(ENGINES),
    help="Serving engine; neuron: whichever part of the Neuron SDK runs the model.",
)

SERVING = (
    Flag(
        name="--precision",
        fields=("engine.precision",),
        parse=str,
        metavar="FORMAT",
        help="Format of the weights.",
    ),
    Flag(
        name="--kv-precision",
        fields=("engine.kv_precision",),
        parse=str,
        metavar="FORMAT",
        help="Format of the cache.",
    ),
    ENGINE,
    Flag(name="--engine-version", fields=("engine.version",), parse=str, metavar="VERSION", help="Its version."),
    Flag(
        name="--utilization",
        fields=("engine.utilization",),
        parse=fraction,
        metavar="SHARE",
        help="Share of memory that the engine takes.",
    ),
    Flag(
        name="--chunk-tokens",
        fields=("engine.chunk_tokens",),
        parse=TOKENS,
        metavar="N",
        help="Tokens of one prefill chunk (max_num_batched_tokens).",
    ),
    Flag(
        name="--max-num-seqs",
        fields=("engine.max_num_seqs",),
        parse=COUNT,
        metavar="N",
        help="Most requests in a batch.",
    ),
    Flag(name="--eager", fields=("engine.eager",), help="Without CUDA graphs."),
    Flag(
        name="--draft",
        fields=("engine.draft",),
        parse=str,
        metavar="MODEL",
        help="Draft model of speculative decoding.",
    ),
)

DRAFT_TOKENS = Flag(
    name="--draft-tokens",
    fields=("engine.draft_tokens",),
    parse=COUNT,
    metavar="N",
    help="Tokens drafted a step; without --draft, by the model's own multi-token-prediction layers.",
)

LORA_RANK = "--lora-rank"

ADAPTERS = (
    Flag(
        name="--lora-adapters",
        fields=("engine.lora_adapters",),
        parse=whole_or_zero,
        metavar="N",
        help="LoRA adapters held at once.",
    ),
    Flag(
        name=LORA_RANK,
        fields=("engine.lora_rank", "training.lora_rank"),
        parse=COUNT,
        metavar="R",
        help="Rank of the adapters.",
    ),
)

METHOD = choice("full-ft", "lora", "qlora", "dora", "pretrain", "dpo", "ppo", "grpo")

TRAINING = (
    Flag(
        name="--method",
        fields=("training.method",),
        parse=METHOD,
        metavar="METHOD",
        help="Training instead of serving: full-ft, lora, qlora, dora, pretrain, dpo, ppo, grpo.",
    ),
    Flag(
        name="--seq-len",
        fields=("training.seq_len",),
        parse=TOKENS,
        metavar="N",
        help="Tokens of a sequence.",
    ),
    Flag(
        name="--micro-batch",
        fields=("training.micro_batch",),
        parse=COUNT,
        metavar="N",
        help="Sequences a device takes at once.",
    ),
    Flag(name="--optimizer", fields=("training.optimizer",), parse=str, metavar="NAME", help="Optimizer."),
    Flag(
        name="--recompute",
        fields=("training.recompute",),
        parse=choice("none", "selective", "full"),
        metavar="none|selective|full",
        help="What is recomputed in the backward pass.",
    ),
    Flag(
        name="--shard",
        fields=("training.shard",),
        parse=choice("none", "zero1", "zero2", "zero3"),
        metavar="none|zero1|zero2|zero3",
        help="What data-parallel devices share.",
    ),
    Flag(
        name="--trainer",
        fields=("training.trainer",),
        parse=str,
        metavar="NAME",
        help="Who trains it, such as megatron, deepspeed, fsdp, torchtune, hf or unsloth.",
    ),
    Flag(
        name="--offload",
        fields=("training.offload",),
        parse=choice("none", "optimizer", "optimizer+weights"),
        metavar="none|optimizer|optimizer+weights",
        help="What waits in host memory.",
    ),
    Flag(
        name="--roles",
        fields=("training.roles",),
        parse=choice("in-turn", "beside", "apart"),
        metavar="in-turn|beside|apart",
        help="Where the other models of DPO, PPO and GRPO are: beside the trained one with generation in turn, "
        "generation beside it too, or all on other devices.",
    ),
)

LENGTHS = (
    Flag(name="--isl", fields=("isl_tokens",), parse=TOKENS, metavar="N", help="Mean prompt length, tokens."),
    Flag(name="--osl", fields=("osl_tokens",), parse=TOKENS, metavar="N", help="Mean answer length, tokens."),
    Flag(name="--lengths", fields=("lengths",), parse=str, metavar="FILE", help="Lengths of real requests."),
)

CONTEXT = Flag(
    name="--context",
    fields=("context_tokens",),
    parse=TOKENS,
    metavar="N",
    help="Longest prompt and answer served, tokens.",
)


def prefix_hit(field: str) -> Flag:
    """`--prefix-hit`, set on so named a field of the request."""
    return Flag(
        name="--prefix-hit",
        fields=(field,),
        parse=fraction,
        metavar="F",
        help="Share of prompt tokens found in the prefix cache.",
    )


MEDIA = (
    Flag(name="--image-size", fields=("image_size",), parse=COUNT, metavar="PIXELS", help="Edge of an image."),
    Flag(name="--steps", fields=("steps",), parse=COUNT, metavar="N", help="Denoising steps."),
    Flag(name="--frames", fields=("frames",), parse=COUNT, metavar="N", help="Frames of a video."),
    Flag(
        name="--audio-seconds",
        fields=("audio_s",),
        parse=positive(parse_seconds),
        metavar="S",
        help="Length of the audio.",
    ),
)
