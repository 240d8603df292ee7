"""A plan as it could be answered: invented figures in the real shape, to look at and to test pages."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.decide.advice import (
    Advice,
    AlsoFeasible,
    Behind,
    Cost,
    Discouraged,
    Excluded,
    FeatureCheck,
    Latency,
    NotJudged,
    Option,
    Parallelism,
    PrecisionChoice,
    PurchaseLine,
    Rejected,
    Scale,
    Sizing,
)
from chipwise.units import Percentiles, Range

GIB = 2**30


def around(mid: float, factor: float = 1.3) -> Range:
    return Range.around(mid, factor=factor)


def percentiles(p50: float) -> Percentiles:
    return Percentiles(mean=p50 * 1.1, p50=p50, p90=p50 * 1.5, p95=p50 * 1.7, p99=p50 * 2.1)


def split(tp: int, pp: int = 1) -> Parallelism:
    return Parallelism(tp=tp, pp=pp, ep=1, dp=1, cp=1)


def memory_answer(chip: str, chips: int, capacity_gib: float, weights_gib: float) -> dict[str, Any]:
    terms = {
        "reserved_bytes": round(0.1 * capacity_gib * GIB),
        "weights_bytes": round(weights_gib * GIB),
        "cache_bytes": 20 * GIB,
        "activations_bytes": round(1.4 * GIB),
        "graphs_bytes": round(0.9 * GIB),
        "overhead_bytes": round(0.6 * GIB),
        "adapters_bytes": 0,
        "draft_bytes": 0,
        "gradients_bytes": 0,
        "optimizer_bytes": 0,
    }
    capacity = round(capacity_gib * GIB)
    left = capacity - sum(terms.values())
    return {
        "fits": left >= 0,
        "chip": chip,
        "chips": chips,
        "per_chip": {"capacity_bytes": capacity, "free_bytes": max(left, 0), **terms},
        "shortfall_bytes": max(-left, 0),
        "kv_pool_bytes": round(30.2 * GIB),
        "kv_cache_tokens": 395_000,
        "max_concurrency_at_context": 48.2,
        "longest_context": 131_072,
        "min_chips": 2,
        "to_make_it_fit": [
            {
                "change": "fp8 weights",
                "frees_bytes": 16 * GIB,
                "costs": "about 0.3 points of quality (guide)",
            },
            {"change": "tp 8 instead of 4", "frees_bytes": 17 * GIB, "costs": "4 more chips"},
        ],
        "range": {"low_fraction": 0.97, "high_fraction": 1.05},
        "evidence": "physics",
        "warnings": ["engine version not stated: 0.21.0 assumed"],
    }


def estimate_answer(tpot_s: float, tokens_per_s: float, chips: int) -> dict[str, Any]:
    return {
        "feasible": True,
        "config": {"instance": "p5.48xlarge", "instances": 1, "replicas": 2, "tp": 4, "precision": "fp8"},
        "serving": {
            "ttft_s": around(0.41, 1.5),
            "tpot_s": around(tpot_s),
            "e2e_s": around(0.41 + 255 * tpot_s),
            "isolated": {"ttft_s": around(0.18, 1.5), "tpot_s": around(tpot_s * 0.7)},
            "output_tokens_per_s": around(tokens_per_s, 1.25),
            "output_tokens_per_s_per_chip": around(tokens_per_s / chips, 1.25),
            "total_tokens_per_s": around(tokens_per_s * 5, 1.25),
            "batch": around(31.0, 1.1),
            "saturated": False,
            "saturation_rate": around(14.2, 1.3),
            "bound_by": "bandwidth",
            "terms": [
                {"op": "mlp", "prefill_s": 0.071, "decode_s": 0.0061, "bound_by": "bandwidth"},
                {"op": "attention", "prefill_s": 0.031, "decode_s": 0.0038, "bound_by": "bandwidth"},
                {"op": "all-reduce", "prefill_s": 0.02, "decode_s": 0.0041, "bound_by": "communication"},
            ],
        },
        "training": None,
        "other": None,
        "memory": memory_answer("h100-sxm", 4, 79.6, 33.0),
        "watts": around(700.0 * chips, 1.4),
        "evidence": "physics",
        "warnings": [],
    }


def cost_of(usd_per_hour: float | None, tokens_per_s: float) -> Cost:
    per_million = None if usd_per_hour is None else around(usd_per_hour / tokens_per_s / 3600 * 1e6)
    return Cost(
        usd_per_hour=None if usd_per_hour is None else around(usd_per_hour, 1.03),
        usd_per_million_output_tokens=per_million,
        usd_per_million_at_capacity=None if per_million is None else per_million.scaled(0.4),
        usd_per_unit=None,
        usd_per_run=None,
        price_as_of="2026-07-20" if usd_per_hour else None,
        price_kind="api" if usd_per_hour else None,
        purchase=(
            PurchaseLine(
                option="on-demand",
                usd_per_hour=around(usd_per_hour, 1.03) if usd_per_hour else None,
                why="list price of 2026-07-20",
            ),
            PurchaseLine(option="spot", usd_per_hour=None, why="no Spot price of this size is printed"),
        ),
        caveats=("list prices, before discounts and commitments", "storage and traffic are not counted"),
    )


CHECKS = (
    FeatureCheck(
        feature="nvlink",
        need="required",
        has=True,
        effect="an all-reduce takes 24 us instead of 310 us over PCIe",
        rule="A:781",
        source="guide A:781",
    ),
    FeatureCheck(
        feature="gpudirect-rdma",
        need="recommended",
        has=False,
        effect="nothing at one node",
        rule="A:781",
        source="guide A:781",
    ),
    FeatureCheck(feature="efa", need="not-needed", has=True, effect="", rule="A:781", source="guide A:781"),
)


FP8 = PrecisionChoice(
    weights="fp8", kv="fp8", compute="fp8", quality={"loss": "about 0.3 points", "source": "guide A:311"}
)
SETTINGS = {"max_num_seqs": 48, "max_model_len": 8192, "gpu_memory_utilization": 0.9, "kv_cache_dtype": "fp8"}
REASONS = (
    "P99 TTFT is 0.82 s against the 1 s asked, with 1.5 x in hand for what the range says",
    "NVSwitch joins all 8 chips: tp 4 costs 17 % of a decode step",
)
DISCOURAGED = Discouraged(
    rule="A:640", why="a 70B model is served on 4 chips here, the guide asks for 8", penalty="none found"
)


def latency_of(rank: int, tpot_s: float) -> Latency:
    return Latency(
        ttft_s=percentiles(0.39 * rank),
        tpot_s=percentiles(tpot_s),
        rating_ttft="good" if rank < 3 else "risky",
        rating_tpot="excellent",
        method="analytic",
    )


def sizing_of(rank: int, tp: int) -> Sizing:
    return Sizing(
        chips_by_memory=tp,
        instances_by_memory=1,
        instances_by_throughput=rank,
        ha_factor=1.0,
        binding="throughput",
    )


def option_of(rank: int, instance: str, chip: str, tp: int, usd_per_hour: float | None) -> Option:
    tokens_per_s, tpot_s = 2900.0 / rank, 0.014 * rank
    return Option(
        rank=rank,
        tied_with=(2,) if rank == 1 else (1,) if rank == 2 else (),
        instance=instance,
        instances=rank,
        chip=chip,
        chips=8 * rank,
        chips_used=8 * rank if rank < 3 else 20,
        replicas=2,
        devices_per_replica=tp,
        parallelism=split(tp),
        precision=FP8,
        engine="vllm 0.21.0",
        settings=SETTINGS,
        memory=memory_answer(chip, tp, 79.6 if rank == 1 else 139.8, 33.0),
        performance=estimate_answer(tpot_s, tokens_per_s, 8 * rank),
        latency=latency_of(rank, tpot_s),
        rating_throughput="low",
        rating_mfu=None,
        run=None,
        sizing=sizing_of(rank, tp),
        cost=cost_of(usd_per_hour, tokens_per_s),
        infrastructure=CHECKS,
        pools=None,
        sharing=None,
        scale=Scale(
            start_with=f"{rank} x {instance}",
            signal="P99 TTFT",
            threshold="above 0.8 s",
            next="one more replica",
        ),
        regions=("us-east-1", "us-east-2", "us-west-2"),
        reasons=REASONS,
        risks=("no measurement backs fp8 on this chip with this engine: the range is physics",),
        discouraged_by=(DISCOURAGED,),
        evidence="physics",
    )


def rejected_rows() -> tuple[Rejected, ...]:
    small = [f"g5.{size}xlarge" for size in (2, 4, 8, 16)] + ["g6.xlarge", "g6.2xlarge"]
    memory = tuple(
        Rejected(
            instance=name,
            rule="memory",
            reason="weights of 65.7 GiB do not fit on one chip of 22.0 GiB at any legal precision",
            shortfall={"value": 14.2 * GIB, "unit": "bytes"},
            nearest={"instance": name, "instances": 1, "precision": "fp8"},
            change="a model of 14B or less",
            source="memory",
        )
        for name in small
    )
    slow = Rejected(
        instance="g6.48xlarge",
        rule="slo",
        reason="P99 TPOT is 71 ms against 40 ms asked",
        shortfall={"value": 0.031, "unit": "s"},
        nearest={"instance": "g6.48xlarge", "instances": 2, "precision": "fp8"},
        change="P99 TPOT of 75 ms",
        source="perf",
    )
    return (*memory, slow)


def workload() -> dict[str, Any]:
    asked = {"preset": "chat", "users": 64, "context": 8192, "ttft_p99_s": 1.0, "tpot_p99_s": 0.04}
    asked |= {"goals": ["latency", "cost"], "regions": ["us-east-1", "us-east-2", "us-west-1", "us-west-2"]}
    preset = {"isl": 1024, "osl": 256, "load": "closed", "strict_guide": False}
    known = {name: {"value": value, "from": "user"} for name, value in asked.items()}
    return known | {name: {"value": value, "from": "preset"} for name, value in preset.items()}


MODEL = {
    "schema_version": 1,
    "name": "Llama-3.3-70B-Instruct",
    "model_type": "llama",
    "architecture": "dense-llm",
    "params_total": 70_553_706_496,
    "params_active": 70_553_706_496,
    "dtype": "bfloat16",
    "weight_bytes": 141_107_412_992,
}
ALSO_FEASIBLE = (
    AlsoFeasible(
        instance="p6-b200.48xlarge",
        instances=1,
        precision="fp8",
        parallelism=split(2),
        usd_per_hour=around(113.93, 1.03),
        ttft_p99_s=0.41,
        tpot_p99_s=0.017,
        behind=Behind(kind="price", value=58.89, unit="USD/h", than="p5.48xlarge"),
        behind_because="ties on latency and costs 2.1 times as much",
    ),
    AlsoFeasible(
        instance="g6e.48xlarge",
        instances=3,
        precision="fp8",
        parallelism=split(4, 2),
        usd_per_hour=None,
        ttft_p99_s=0.97,
        tpot_p99_s=0.038,
        behind=Behind(kind="slo", value=0.4, unit="s", than="p5.48xlarge"),
        behind_because="slower; no price is known in the regions asked for",
    ),
)
GUIDE = {
    "path": ["inference", "70B or more", "latency first"],
    "recommends": ["p5.48xlarge", "p5en.48xlarge"],
    "agrees": False,
    "differs": [{"kind": "price", "id": "p5.48xlarge", "value": 12.5, "unit": "USD/h", "why": "ties; $12.50 dearer"}],
}
VERDICT = {
    "verdict": "nvidia",
    "signals": [
        {
            "signal": "TTFT bar",
            "points_to": "nvidia",
            "why": "1 s leaves room for both, but no compiled ramp was stated",
            "source": "guide B:210",
        },
        {"signal": "team", "points_to": "either", "why": "nothing was said", "source": "guide B:233"},
    ],
}


@pytest.fixture(scope="session")
def advice() -> Advice:
    """Three options, two more that would do, seven rejected, two not judged, two left out."""
    return Advice(
        facts_as_of="2026-11-30",
        model=MODEL,
        workload=workload(),
        options=(
            option_of(1, "p5.48xlarge", "h100-sxm", 4, 55.04),
            option_of(2, "p5en.48xlarge", "h200-sxm", 4, 63.30),
            option_of(3, "trn2.48xlarge", "trainium2", 16, None),
        ),
        also_feasible=ALSO_FEASIBLE,
        rejected=rejected_rows(),
        not_judged=(
            NotJudged(instance="p6e-gb300.36xlarge", lacks="memory, bandwidth"),
            NotJudged(instance="trn3.48xlarge", lacks="memory, bandwidth"),
        ),
        excluded=(
            Excluded(instance="p3.2xlarge", by="retired"),
            Excluded(instance="c7i.48xlarge", by="no accelerator"),
        ),
        considered={"sizes": 94, "configurations": 1834},
        guide=GUIDE,
        gpu_or_neuron=VERDICT,
        gpu_needed=None,
        benchmark={
            "commands": [
                "vllm bench serve --model meta-llama/Llama-3.3-70B-Instruct --max-concurrency 64",
                "chipwise bench verdict RESULT.json",
            ],
            "decide_by": "P99 TPOT of options 1 and 2, which tie",
        },
        warnings=("prices are list prices of 2026-07-20",),
    )
