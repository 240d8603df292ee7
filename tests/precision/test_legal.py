from __future__ import annotations

from collections.abc import Callable

import pytest

from chipwise.errors import InputError, UnknownNameError
from chipwise.model import ModelSpec
from chipwise.precision import (
    PrecisionOption,
    default_option,
    format_facts,
    legal_kv_formats,
    legal_precisions,
    option_for,
    precision_rank,
    widened_fallback,
)


def names(options: tuple[PrecisionOption, ...]) -> list[str]:
    return [option.format for option in options]


MakeModel = Callable[..., ModelSpec]


def test_sixteen_bits_may_be_quantised_and_the_stored_format_comes_first(make_model: MakeModel) -> None:
    found = names(legal_precisions(make_model()))
    assert found[0] == "bf16"
    assert {"fp8", "int8", "int4-g128", "nvfp4"} <= set(found)
    assert "fp32" not in found


def test_integers_and_fp4_need_calibration_and_fp8_does_not(make_model: MakeModel) -> None:
    needs = {option.format: option.calibration_data for option in legal_precisions(make_model())}
    assert needs["int4-g128"]
    assert needs["int8"]
    assert needs["nvfp4"]
    assert not needs["fp8"]
    assert not needs["bf16"]


def test_losses_are_claims_and_say_so(make_model: MakeModel) -> None:
    by_name = {option.format: option for option in legal_precisions(make_model())}
    assert by_name["bf16"].quality_loss == "none"
    assert "0.5" in (by_name["fp8"].quality_loss or "")
    assert by_name["fp8"].verdict.startswith("unverified")
    assert "1 to 3" in (by_name["int4-g128"].quality_loss or "")
    assert all(option.source for option in by_name.values())
    assert "unverified" in str(by_name["fp8"].as_json()["quality_loss"])


def test_an_fp8_checkpoint_stays_or_goes_to_four_bits(make_model: MakeModel) -> None:
    model = make_model(quantised="fp8-block")
    found = legal_precisions(model)
    assert names(found)[0] == "fp8-block"
    assert {format_facts(name).bits for name in names(found)} == {8, 4}
    assert next(option for option in found if option.format == "int4-g128").quality_loss == "cumulative"


@pytest.mark.parametrize("stored", ["int4-g128", "nvfp4", "mxfp4", "nf4", "gguf-q4_k", "int8", "int4-g64"])
def test_integers_four_bits_and_gguf_are_used_as_they_are(make_model: MakeModel, stored: str) -> None:
    assert names(legal_precisions(make_model(quantised=stored))) == [stored]


@pytest.mark.parametrize("stored", ["bf16", "fp16", "fp32", "fp8", "fp8-channel", "int8", "int4-g128", "mxfp8"])
def test_bits_never_go_up(make_model: MakeModel, stored: str) -> None:
    model = make_model(dtype=stored) if stored.endswith(("16", "32")) else make_model(quantised=stored)
    options = legal_precisions(model)
    assert options
    assert all(precision_rank(option.format) <= precision_rank(stored) for option in options)


def test_networks_that_are_no_language_models_get_no_awq(make_model: MakeModel) -> None:
    found = names(legal_precisions(make_model(architecture="cnn", dtype="float32")))
    assert found[0] == "fp32"
    assert "int8" in found
    assert "int4-g128" not in found
    assert names(legal_precisions(make_model(architecture="tabular"))) == ["bf16"]


def test_a_silent_checkpoint_goes_by_its_weights(make_model: MakeModel) -> None:
    assert names(legal_precisions(make_model(dtype=None, fmt="fp16")))[0] == "fp16"
    assert names(legal_precisions(make_model(dtype="no-such-type")))[0] == "bf16"


def test_the_option_for_a_wish(make_model: MakeModel) -> None:
    assert option_for(make_model(), "awq").format == "int4-g128"
    assert option_for(make_model(quantised="fp8-block"), "fp8").format == "fp8-block"


def test_a_wish_for_more_bits_is_refused(make_model: MakeModel) -> None:
    with pytest.raises(InputError, match="cannot be used at bf16") as caught:
        option_for(make_model(quantised="fp8"), "bf16")
    assert "more bits" in caught.value.why
    assert "fp8" in caught.value.fix


def test_a_wish_without_a_step_is_refused(make_model: MakeModel) -> None:
    with pytest.raises(InputError) as caught:
        option_for(make_model(quantised="nvfp4"), "int4")
    assert "no known step" in caught.value.why
    with pytest.raises(UnknownNameError):
        option_for(make_model(), "fp99")


def test_only_quantised_checkpoints_have_a_wide_copy(make_model: MakeModel) -> None:
    assert widened_fallback(make_model()) is None
    assert widened_fallback(make_model(quantised="gguf-q4_k")) is None
    wide = widened_fallback(make_model(quantised="mxfp4"))
    assert wide is not None
    assert wide.format == "bf16"
    assert wide.format not in names(legal_precisions(make_model(quantised="mxfp4")))


def test_the_cache_starts_at_the_models_width_and_goes_down(make_model: MakeModel) -> None:
    assert names(legal_kv_formats(make_model())) == ["bf16", "fp8", "int8", "nvfp4"]
    assert names(legal_kv_formats(make_model(dtype="float16")))[0] == "fp16"
    assert names(legal_kv_formats(make_model(dtype="float32")))[0] == "bf16"


def test_engines_cast_wide_language_models_and_leave_others(make_model: MakeModel) -> None:
    assert default_option(make_model(dtype="float32")).format == "bf16"
    assert default_option(make_model(dtype="float32", architecture="cnn")).format == "fp32"
    assert default_option(make_model(dtype="float16")).format == "fp16"
    assert default_option(make_model(quantised="fp8-block")).format == "fp8-block"
