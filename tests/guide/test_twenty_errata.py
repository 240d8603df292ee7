"""The twenty errata that matter most, asked at the command line as a user would."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from chipwise.catalog import Catalog
from chipwise.engines import neuron_support
from chipwise.guide.tables import table
from chipwise.interfaces.cli import cli

Ask = Callable[..., dict[str, Any]]


def facts(ask: Ask, name: str) -> dict[str, Any]:
    return {fact["key"]: fact["value"] for fact in ask("catalog", "show", name)["facts"]}


def priced(ask: Ask, name: str, term: str) -> list[float]:
    prices = ask("catalog", "show", name)["prices"]
    return [one["usd_per_hour"] for one in prices if one["term"] == term and one["usd_per_hour"] is not None]


def cache_table(ask: Ask) -> dict[tuple[int, int], float]:
    grid = "4k,8k,32k,128k x 1,16,64,128"
    answer = ask("memory", "llama-3.3-70b", "--chip", "h100-sxm", "--tp", "8", "--table", grid)
    cells = answer["table"]
    return {
        (cell["context_tokens"], int(cell["concurrency"])): cell["per_chip"]["cache_bytes"] * cell["chips"]
        for cell in cells
    }


def test_01_every_cell_of_the_cache_table(ask: Ask) -> None:
    asked = cache_table(ask)
    rows = table("kv_cells")
    assert len(asked) == len(rows) == 16
    for row in rows:
        held_gb = asked[int(row["context_tokens"]), int(row["concurrency"])] / 1e9
        assert held_gb == pytest.approx(float(row["right_gb"]), abs=0.0006)
        assert held_gb == pytest.approx(float(row["guide_gb"]) * 1.25, rel=0.004)


@pytest.mark.parametrize("name", ["deepseek-v3", "kimi-k2", "glm-5", "mixtral-8x7b", "llama-4-scout", "gpt-oss-20b"])
def test_02_mixtures_are_told_by_their_real_keys(ask: Ask, name: str) -> None:
    answer = ask("model", name)
    assert answer["experts"]["routed"] > answer["experts"]["per_token"]
    assert answer["params_active"] < answer["params_total"]


@pytest.mark.parametrize("name", ["llama-3.3-70b", "gemma-3-27b", "qwen3-8b"])
def test_02_dense_models_are_no_mixtures(ask: Ask, name: str) -> None:
    answer = ask("model", name)
    assert answer["experts"] is None
    assert answer["params_active"] == answer["params_total"]


def test_03_glm_5_is_a_mixture_of_256(ask: Ask) -> None:
    answer = ask("model", "glm-5")
    assert (answer["architecture"], answer["experts"]["routed"]) == ("moe-llm", 256)


def test_04_g7e_splits_into_four(ask: Ask, catalog: Catalog) -> None:
    answer = ask("memory", "qwen3-8b", "--chip", "rtx-pro-6000", "--mig", "1g.24gb", "--tp", "1", "--context", "4k")
    assert answer["fits"]
    assert answer["per_chip"]["capacity_bytes"] < 26e9
    most = {
        name: max((one.count or 0 for one in catalog.chips[name].mig_profiles), default=0)
        for name in ("rtx-pro-6000", "rtx-pro-4500", "h200-sxm", "b200", "l40s", "l4", "a10g")
    }
    assert list(most.values()) == [4, 2, 7, 7, 0, 0, 0]


def test_05_trn2_has_3200_gbps_of_efa_v3(ask: Ask) -> None:
    found = facts(ask, "trn2.48xlarge")
    assert (found["efa"], found["efa_generation"], found["efa_interfaces"]) == (3200, 3, 16)
    assert facts(ask, "trn2.3xlarge")["efa"] == 200


def test_06_g6e_efa_by_size(ask: Ask) -> None:
    sizes = {"48xlarge": 400, "24xlarge": 200, "12xlarge": 100, "16xlarge": 35, "8xlarge": 25, "4xlarge": 0}
    assert {size: facts(ask, f"g6e.{size}")["efa"] for size in sizes} == sizes


def test_07_blackwell_rounds_stochastically(ask: Ask) -> None:
    assert [facts(ask, chip)["stochastic_rounding"] for chip in ("b200", "trainium2", "h100-sxm", "a10g")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_08_int4_is_arithmetic_on_ampere_and_ada_only(ask: Ask) -> None:
    native = {
        name: facts(ask, name)["native"].split("|") for name in ("a10g", "a100-sxm-80", "l40s", "h100-sxm", "b200")
    }
    assert ["int4" in formats for formats in native.values()] == [True, True, True, False, False]
    assert all("int4" in facts(ask, name)["weight_only"].split("|") for name in native)


def test_09_g5_has_structured_sparsity(ask: Ask) -> None:
    assert [facts(ask, name)["sparsity"] for name in ("a10g", "l40s", "trainium2", "trainium1")] == [
        True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("chip", "precision"), [("h100-sxm", "int4"), ("a100-sxm-80", "fp8"), ("h100-sxm", "nvfp4"), ("l40s", "nvfp4")]
)
def test_10_no_native_format_is_no_filter(ask: Ask, chip: str, precision: str) -> None:
    answer = ask("memory", "llama-3.3-70b", "--chip", chip, "--tp", "2", "--precision", precision, "--context", "4k")
    assert answer["fits"]
    bf16 = ask("memory", "llama-3.3-70b", "--chip", chip, "--tp", "2", "--precision", "bf16", "--context", "4k")
    assert answer["per_chip"]["weights_bytes"] < 0.6 * bf16["per_chip"]["weights_bytes"]


def test_11_b200_has_180_gb(ask: Ask) -> None:
    found = facts(ask, "b200")
    assert found["memory_marketing"] == 180
    assert 178 <= found["memory"] <= 180  # GiB


def test_12_cores_of_64_trn2_nodes(ask: Ask) -> None:
    chip, node = facts(ask, "trainium2"), facts(ask, "trn2.48xlarge")
    physical = 64 * node["chips"] * chip["physical_cores"]
    assert (physical, physical // chip["lnc"]) == (8192, 4096)


def test_13_trn2_is_not_sold_on_demand(ask: Ask) -> None:
    assert "on-demand" not in facts(ask, "trn2.48xlarge")["usage_classes"].split("|")
    assert priced(ask, "trn2.48xlarge", "on-demand") == []
    (block,) = priced(ask, "trn2.48xlarge", "capacity-block")
    trn2 = block / (16 * facts(ask, "trainium2")["bf16"])
    p5 = min(priced(ask, "p5.48xlarge", "capacity-block")) / (8 * facts(ask, "h100-sxm")["bf16"])
    assert 1 - trn2 / p5 == pytest.approx(0.36, abs=0.01)


def test_14_p5e_has_no_price_on_demand(ask: Ask) -> None:
    assert priced(ask, "p5e.48xlarge", "on-demand") == []
    assert 47.76 in priced(ask, "p5e.48xlarge", "capacity-block")
    assert 63.296 in priced(ask, "p5en.48xlarge", "on-demand")
    assert 55.04 in priced(ask, "p5.48xlarge", "on-demand")


def test_15_spot_savings_are_lower_than_promised(catalog: Catalog) -> None:
    rows = [one for name in catalog.instances for one in catalog.spot_history(name)]
    gpus = [one for one in rows if catalog.instances[one.instance].kind == "gpu"]
    savings = [one.savings_fraction for one in gpus]
    reached = sum(one >= 0.7 for one in savings) / len(savings)
    assert statistics.median(savings) == pytest.approx(0.67, abs=0.02)
    assert reached == pytest.approx(0.38, abs=0.04)
    p5 = [one.savings_fraction for one in gpus if catalog.instances[one.instance].family == "p5"]
    assert statistics.median(p5) == pytest.approx(0.52, abs=0.01)
    assert min(p5) < 0  # dearer than on-demand


def test_16_inferentia2_is_pinned_to_an_old_release(ask: Ask) -> None:
    answer = ask("plan", "llama-3.1-8b", "--for", "chat", "--users", "8", "--only", "inf2", "--only", "trn2")
    risks = {one["instance"]: " ".join(one["risks"]) for one in answer["options"]}
    pinned = {name for name, said in risks.items() if "pin Neuron SDK 2.28" in said}
    assert pinned
    assert pinned == {name for name in risks if name.startswith("inf2.")}
    assert neuron_support("qwen3", "serve", "inferentia2").sdk_pin is not None


def test_17_dra_runs_on_auto_mode_and_dynamic_karpenter(ask: Ask) -> None:
    rows = {row[0]: row for row in ask("guide", "show", "B-sharing")["tables"][0]["rows"]}
    assert "1.36" in " ".join(rows["dra"])
    assert "dynamic" in " ".join(rows["dra"])
    amiss = {one["id"]: one for one in ask("guide", "errata")["claims"]}
    assert (amiss["B-dra-automode"]["verdict"], amiss["B-dra-karpenter"]["verdict"]) == ("outdated", "outdated")
    assert "1.15" in amiss["B-dra-karpenter"]["right_value"]


def test_18_the_time_slicing_config_is_one_the_plugin_takes(ask: Ask) -> None:
    config = yaml.safe_load(f"{{{ask('explain', 'time-slicing')['config']}}}")
    (resource,) = config["sharing"]["timeSlicing"]["resources"]
    assert resource == {"name": "nvidia.com/gpu", "replicas": 4}
    assert "replicas" not in config["sharing"]["timeSlicing"]


def test_19_sizes_have_the_gpus_they_have(ask: Ask) -> None:
    counts = {"g6e.12xlarge": 4, "g7e.12xlarge": 2, "g6e.8xlarge": 1, "g6e.16xlarge": 1, "g7e.2xlarge": 1}
    assert {name: facts(ask, name)["chips"] for name in counts} == counts
    refused = CliRunner().invoke(cli, ["catalog", "show", "g7e.xlarge"], prog_name="chipwise")
    assert refused.exit_code == 2
    assert "g7e." in refused.stderr


def test_20_the_missing_families_are_known(ask: Ask) -> None:
    have = {one["family"] for one in ask("catalog", "list")["instances"]}
    missing = "p5en p6-b200 p6-b300 p6e-gb200 p6e-gb300 g7 g7e g6f gr6 gr6f g5g g4dn trn1n trn2u inf1 inf2 dl2q"
    assert set(missing.split()) <= have
    assert facts(ask, "p5.4xlarge")["chips"] == 1
    assert facts(ask, "p6-b300.48xlarge")["efa"] == 6400
    assert any(family.startswith("trn3") for family in have)
