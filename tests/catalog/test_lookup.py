"""Names: exact, alias, near, refused; prices and offerings by size; any text at all."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog import Alias, Catalog, Chip, load_catalog
from chipwise.catalog.lookup import fold
from chipwise.errors import ChipwiseError, KnowledgeError, UnknownNameError


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("h100-sxm", "h100-sxm"),
        ("H100", "h100-sxm"),
        ("NVIDIA H100-SXM5-80GB 81559 MiB", "h100-sxm"),
        ("a100_80gb sxm", "a100-sxm-80"),
        ("gh200", "gh200-96"),
        ("inf2", "inferentia2"),
        ("Tesla T4", "t4"),
        ("rtx-pro-6000", "rtx-pro-6000"),
    ],
)
def test_a_chip_by_id_or_alias(catalog: Catalog, name: str, chip: str) -> None:
    assert catalog.chip(name).id == chip


@pytest.mark.parametrize("name", ["A100", "24 GB GPU", "H200-141GB / B200-180GB (identical)", "Intel XPU"])
def test_a_name_that_does_not_settle_the_chip_says_why(catalog: Catalog, name: str) -> None:
    with pytest.raises(KnowledgeError) as caught:
        catalog.chip(name)
    assert caught.value.exit_status == 3
    assert caught.value.why == catalog.aliases[fold(name)].note != ""


def test_an_open_form_factor_proposes_the_forms(catalog: Catalog) -> None:
    with pytest.raises(KnowledgeError) as caught:
        catalog.chip("A100")
    assert "a100-" in caught.value.fix


def test_a_known_chip_without_facts_is_our_lack(catalog: Catalog) -> None:
    named = Alias(alias="MI999X", chip="mi999x", note="announced, no figures", source="hw-names")
    poorer = dataclasses.replace(catalog, aliases={"mi999x": named})
    with pytest.raises(KnowledgeError, match="no facts about the chip 'mi999x'") as caught:
        poorer.chip("MI999X")
    assert caught.value.why == "announced, no figures"


@pytest.mark.parametrize(
    ("name", "chip", "vendor", "tflops"),
    [
        ("AMD Instinct MI300X", "mi300x", "amd", 1307.4),
        ("MI250X", "mi250x", "amd", 383),
        ("Habana Gaudi2", "gaudi2", "intel", 432),
        ("TPU v5e", "tpu-v5e", "google", 197),
        ("NVIDIA GeForce RTX 4080 SUPER", "rtx-4080-super", "nvidia", 104.4),
        ("RTX5080", "rtx-5080", "nvidia", 112.6),
        ("L40", "l40", "nvidia", 181),
        ("H100 96GB", "h100-sxm-96", "nvidia", 989),
    ],
)
def test_chips_of_other_places_are_found(catalog: Catalog, name: str, chip: str, vendor: str, tflops: float) -> None:
    found = catalog.chip(name)
    assert (found.id, found.vendor, found.aws_families) == (chip, vendor, ())
    assert found.dense_flops_per_s["bf16"] == pytest.approx(tflops * 1e12)


@pytest.mark.parametrize(("name", "near"), [("h100-smx", "h100-sxm"), ("rtx-pro-600", "rtx-pro-6000")])
def test_an_unknown_chip_proposes_near_names(catalog: Catalog, name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.chip(name)
    assert near in caught.value.fix


@pytest.mark.parametrize("name", ["p5en.48xlarg", "P5EN.48XLARG"])
def test_an_unknown_size_proposes_near_names(catalog: Catalog, name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.instance(name)
    assert caught.value.fix.startswith("did you mean p5en.48xlarge")


def test_a_bare_family_lists_its_sizes(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.instance("p5")
    assert caught.value.fix == "name a size: p5.48xlarge, p5.4xlarge"


def test_nothing_like_it_points_to_the_list(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.instance("zzzz")
    assert "catalog list" in caught.value.fix


def test_case_does_not_count(catalog: Catalog) -> None:
    assert catalog.instance(" P5.48xlarge ").name == "p5.48xlarge"


def answer(catalog: Catalog, name: str) -> Chip | ChipwiseError:
    try:
        return catalog.chip(name)
    except (KnowledgeError, UnknownNameError) as error:
        return error


@given(st.text(max_size=30))
def test_any_name_is_a_chip_or_a_clear_error(name: str) -> None:
    found = answer(load_catalog(), name)
    assert found.what and found.fix if isinstance(found, ChipwiseError) else found.id in load_catalog().chips


def test_every_id_and_alias_folds_to_itself(catalog: Catalog) -> None:
    assert all(fold(chip) == chip for chip in catalog.chips)
    assert all(fold(name) == name for name in catalog.instances)
    assert all(key == fold(alias.alias) for key, alias in catalog.aliases.items())


def test_no_alias_hides_a_chip(catalog: Catalog) -> None:
    assert all(alias.chip == name for name, alias in catalog.aliases.items() if name in catalog.chips)


@pytest.mark.parametrize(
    ("size", "region", "usd"),
    [
        ("p5.48xlarge", "us-east-1", 55.04),
        ("p5en.48xlarge", "us-east-1", 63.296),
        ("p6-b200.48xlarge", "us-west-2", 113.9328),
        ("g6e.xlarge", "ap-northeast-1", 2.699),
    ],
)
def test_on_demand_prices(catalog: Catalog, size: str, region: str, usd: float) -> None:
    prices = catalog.prices(size, term="on-demand", regions=[region])
    assert usd in [pytest.approx(price.usd_per_hour, rel=1e-3) for price in prices]


@pytest.mark.parametrize("size", ["p5e.48xlarge", "trn2.48xlarge", "trn2u.48xlarge"])
def test_a_size_without_on_demand_price_says_so(catalog: Catalog, size: str) -> None:
    prices = catalog.prices(size, term="on-demand")
    assert prices
    assert all(price.usd_per_hour is None and price.note for price in prices)


def test_a_price_without_region_is_in_no_region(catalog: Catalog) -> None:
    (price,) = catalog.prices("trn2.48xlarge", term="capacity-block")
    assert (price.region, price.usd_per_hour, price.as_of) == (None, 35.7608, "2026-08-01")
    assert catalog.prices("trn2.48xlarge", term="capacity-block", regions=catalog.regions) == ()


def test_overtaken_prices_are_kept_apart(catalog: Catalog) -> None:
    now = catalog.prices("p5.48xlarge", term="capacity-block")
    ever = catalog.prices("p5.48xlarge", term="capacity-block", historical=True)
    assert {price.usd_per_hour for price in now} == {41.528}
    assert {price.as_of for price in ever} == {"2026-08-01", "2024-12"}


def test_an_ultraserver_price_is_of_all_its_instances(catalog: Catalog) -> None:
    prices = catalog.prices("p6e-gb200.36xlarge")
    assert {(p.scope, p.instances, p.usd_per_hour) for p in prices} == {
        ("ultraserver", 18, 761.904),
        ("ultraserver", 9, 380.952),
    }


def test_undated_prices_stay_undated(catalog: Catalog) -> None:
    undated = [p for prices in catalog.prices_by_instance.values() for p in prices if p.as_of is None]
    assert undated
    assert all("undated" in catalog.sources[price.source].title for price in undated)


def test_offerings_with_zones(catalog: Catalog) -> None:
    (offering,) = catalog.offerings("trn2u.48xlarge")
    assert (offering.region, offering.evidence) == ("ap-south-2", "api")
    assert offering.zones
    assert catalog.regions_of("trn2.48xlarge") == ("ap-south-2", "us-east-2")


def test_a_price_list_is_weaker_evidence_than_an_offering(catalog: Catalog) -> None:
    sure, wider = catalog.regions_of("p5.48xlarge"), catalog.regions_of("p5.48xlarge", priced=True)
    assert "us-gov-west-1" in set(wider) - set(sure)
    assert set(sure) <= set(wider)


def test_a_retired_size_is_offered_nowhere(catalog: Catalog) -> None:
    retired = [size.name for size in catalog.instances.values() if size.status == "retired"]
    assert retired
    assert all(catalog.regions_of(name, priced=True) == () for name in retired)


def test_spot_history(catalog: Catalog) -> None:
    rows = catalog.spot_history("g6e.xlarge")
    assert rows
    assert all(row.interruption_low_fraction < row.interruption_high_fraction <= 1 for row in rows)
    assert all(row.as_of == "2025-06-28" for row in rows)
    assert catalog.spot_history("p6-b200.48xlarge") == ()


def test_facts_of_a_size_and_of_an_alias(catalog: Catalog) -> None:
    assert {fact.subject for fact in catalog.facts_of("p5.48xlarge")} == {"p5.48xlarge"}
    assert {fact.subject for fact in catalog.facts_of("H100")} == {"h100-sxm"}
    with pytest.raises(UnknownNameError):
        catalog.facts_of("nothing-like-it")


def test_regions_have_kind_and_geography(catalog: Catalog) -> None:
    kinds = {name: (region.kind, region.geography) for name, region in catalog.regions.items()}
    assert kinds["us-east-1"] == ("commercial", "us")
    assert kinds["us-gov-west-1"] == ("gov", "us")
    assert kinds["us-east-1-dfw"] == ("local-zone", "us")
    assert kinds["cn-north-1"] == ("china", "cn")


def test_facts_as_of_is_the_newest_date(catalog: Catalog) -> None:
    dates = [source.read_on for source in catalog.sources.values()]
    assert catalog.facts_as_of == max(dates)
