"""--strict-guide: the guide's filters to the letter, right or not, each with its line."""

from __future__ import annotations

import dataclasses

from chipwise.catalog import Catalog
from chipwise.guide import StrictQuestion, claim, strict_rejections
from chipwise.guide.tables import table

ASKED = StrictQuestion(architecture="dense-llm", weights_bf16_bytes=141e9, format_family="bf16")


def rules(catalog: Catalog, name: str, question: StrictQuestion) -> list[str]:
    instance = catalog.instances[name]
    return [one.rule for one in strict_rejections(instance, catalog.chips[instance.chip or ""], question)]


def test_the_letter_excludes_sizes_without_nvlink(catalog: Catalog) -> None:
    small = dataclasses.replace(ASKED, weights_bf16_bytes=16e9)
    assert [rules(catalog, name, ASKED) for name in ("g6e.48xlarge", "g7e.12xlarge")] == [["strict-nvlink"]] * 2
    assert [rules(catalog, name, ASKED) for name in ("p5.48xlarge", "trn2.48xlarge")] == [[], []]
    assert rules(catalog, "g6e.48xlarge", small) == []


def test_the_letter_excludes_formats_by_its_own_matrix(catalog: Catalog) -> None:
    int4 = dataclasses.replace(ASKED, weights_bf16_bytes=16e9, format_family="int4")
    fp8 = dataclasses.replace(int4, format_family="fp8")
    nvfp4 = dataclasses.replace(int4, format_family="nvfp4")
    assert rules(catalog, "g5.xlarge", int4) == ["strict-format"]
    assert rules(catalog, "p5.48xlarge", int4) == []  # the guide marks INT4 on Hopper, which has no such units
    assert rules(catalog, "p4d.24xlarge", fp8) == ["strict-format"]
    assert rules(catalog, "p5.48xlarge", nvfp4) == ["strict-format"]
    assert rules(catalog, "g7e.2xlarge", nvfp4) == []
    assert rules(catalog, "g6.xlarge", fp8) == []  # no column in the guide: the chip's own formats decide


def test_the_letter_needs_efa_across_nodes_and_mig_for_tenants(catalog: Catalog) -> None:
    small = dataclasses.replace(ASKED, weights_bf16_bytes=16e9)
    two = dataclasses.replace(small, nodes=2)
    tenants = dataclasses.replace(small, isolation="hardware")
    pretraining = dataclasses.replace(small, large_pretraining=True)
    assert [rules(catalog, name, two) for name in ("g6e.2xlarge", "g6e.48xlarge")] == [["strict-efa"], []]
    assert [rules(catalog, name, tenants) for name in ("g7e.2xlarge", "p5.48xlarge")] == [["strict-mig"], []]
    assert rules(catalog, "g6e.48xlarge", pretraining) == ["strict-gpudirect"]
    assert rules(catalog, "p5en.48xlarge", pretraining) == []


def test_classical_models_do_not_go_to_neuron(catalog: Catalog) -> None:
    trees = dataclasses.replace(ASKED, architecture="tabular", weights_bf16_bytes=0.0, format_family="fp32")
    assert [rules(catalog, name, trees) for name in ("trn2.48xlarge", "g6.xlarge")] == [["strict-classical"], []]


def test_every_rejection_says_its_line_and_names_a_real_erratum(catalog: Catalog) -> None:
    instance = catalog.instances["g6e.48xlarge"]
    (found,) = strict_rejections(instance, catalog.chips["l40s"], ASKED)
    assert found.source == "guide A:720"
    assert "letter" in found.reason
    errata = [row["erratum"] for row in table("strict") if row["erratum"]]
    assert all(claim(name).verdict != "right" for name in errata)
