from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import UnknownNameError
from chipwise.model import ModelSpec, Tower, Weight
from chipwise.precision import bytes_per_param, stored_bytes, with_precision

MakeModel = Callable[..., ModelSpec]
LAYER_MATRICES = 256 * 256 + 256 * 512
OTHERS = 2 * (256 + 8 * 256) + 2 * 1024 * 256  # norms and routers of two layers, embedding and head


def formats(model: ModelSpec) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for weight, _ in model.all_weights():
        found.setdefault(weight.part, set()).add(weight.format)
    return found


def test_bytes_of_a_plain_checkpoint(make_model: MakeModel) -> None:
    stored = stored_bytes(make_model())
    assert stored.main_bytes == 2 * (2 * LAYER_MATRICES + OTHERS)
    assert stored.mtp_bytes == 0
    assert stored.total_bytes == stored.main_bytes


def test_multi_token_prediction_is_counted_apart(make_model: MakeModel) -> None:
    plain, with_mtp = stored_bytes(make_model()), stored_bytes(make_model(mtp=True))
    assert with_mtp.main_bytes == plain.main_bytes
    assert with_mtp.mtp_bytes == 2 * 2 * (LAYER_MATRICES + 256 + 8 * 256)
    assert with_mtp.total_bytes == with_mtp.main_bytes + with_mtp.mtp_bytes


def test_experts_are_counted_as_often_as_they_are_stored(make_model: MakeModel) -> None:
    difference = stored_bytes(make_model(experts=8)).main_bytes - stored_bytes(make_model()).main_bytes
    assert difference == 2 * 8 * 512 * 256 * 2


def test_a_better_total_scales_the_sum(make_model: MakeModel) -> None:
    counted = make_model()
    stated = replace(counted, params_stated=2 * counted.params_total)
    assert stored_bytes(stated).main_bytes == 2 * stored_bytes(counted).main_bytes


def test_quantisers_leave_embedding_head_norm_and_router(make_model: MakeModel) -> None:
    model = with_precision(make_model(experts=8), "int4")
    assert formats(model) == {
        "attention": {"int4-g128"}, "mlp": {"int4-g128"}, "expert": {"int4-g128"}, "norm": {"bf16"},
        "router": {"bf16"}, "embedding": {"bf16"}, "head": {"bf16"},
    }  # fmt: skip
    assert model.quantisation is not None
    assert model.quantisation.weight_format == "int4-g128"
    assert model.quantisation.bits_per_weight == 4.15625


def test_gguf_takes_embedding_and_head_too(make_model: MakeModel) -> None:
    found = formats(with_precision(make_model(), "q8_0"))
    assert found["embedding"] == found["head"] == found["mlp"] == {"gguf-q8_0"}
    assert found["norm"] == found["router"] == {"bf16"}


def test_plain_formats_take_every_weight(make_model: MakeModel) -> None:
    model = with_precision(make_model(quantised="fp8"), "bf16")
    assert all(names == {"bf16"} for names in formats(model).values())
    assert model.quantisation is None
    assert model.dtype == "bfloat16"
    assert stored_bytes(with_precision(make_model(), "fp32")).main_bytes == 2 * stored_bytes(make_model()).main_bytes


def test_parameters_do_not_change_with_the_format(make_model: MakeModel) -> None:
    model = make_model(experts=8, mtp=True)
    for name in ("fp8", "nvfp4", "q4_k_m", "fp32"):
        assert with_precision(model, name).params_total == model.params_total
        assert with_precision(model, name).params_mtp == model.params_mtp


def test_fewer_bits_take_fewer_bytes(make_model: MakeModel) -> None:
    sizes = [stored_bytes(with_precision(make_model(), name)).main_bytes for name in ("fp32", "bf16", "fp8", "nvfp4")]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


@given(name=st.sampled_from(["fp8", "fp8-block", "int8", "int4-g128", "nvfp4", "mxfp4", "nf4"]))
def test_quantised_matrices_take_what_the_format_says(make_model: MakeModel, name: str) -> None:
    model = make_model()
    saved = stored_bytes(model).main_bytes - stored_bytes(with_precision(model, name)).main_bytes
    expected = 2 * LAYER_MATRICES * (2 - bytes_per_param(name))
    assert abs(saved - expected) <= 2 * (256 + 256) * 4 + 16  # scales of rows and tensors


def test_an_unknown_format_is_refused(make_model: MakeModel) -> None:
    with pytest.raises(UnknownNameError):
        with_precision(make_model(), "fp12")


def test_towers_count_and_stay_as_they_are_unless_all_is_covered(make_model: MakeModel) -> None:
    small = make_model()
    patch = Weight(name="patch", part="other", out_features=256, in_features=768)
    model = replace(small, towers=(Tower(name="vision", layers=small.layers, weights=(patch,)),))
    assert stored_bytes(model).main_bytes - stored_bytes(small).main_bytes == 2 * (
        2 * (LAYER_MATRICES + 256 + 8 * 256) + 256 * 768
    )
    assert with_precision(model, "fp8").towers == model.towers
    assert with_precision(model, "q8_0").towers[0].weights[0].format == "gguf-q8_0"


def test_a_tied_head_takes_nothing(make_model: MakeModel) -> None:
    small = make_model()
    tied = replace(small, outer=(small.outer[0], replace(small.outer[1], stored=False)))
    assert stored_bytes(small).main_bytes - stored_bytes(tied).main_bytes == 2 * 1024 * 256


def test_models_that_differ_in_the_place_of_their_layers_alone_keep_their_own(make_model: MakeModel) -> None:
    first = make_model()
    places = [tuple(10 * at + one for one in range(layer.count)) for at, layer in enumerate(first.layers)]
    moved = replace(
        first, layers=tuple(replace(layer, indices=at) for layer, at in zip(first.layers, places, strict=True))
    )
    assert [layer.indices for layer in with_precision(first, "fp8").layers] == [one.indices for one in first.layers]
    assert [layer.indices for layer in with_precision(moved, "fp8").layers] == places
