"""Names that mean nothing and flags that contradict each other are refused, with what, why and fix."""

from __future__ import annotations

import pytest

from chipwise import Request, advise, load_catalog
from chipwise.advisor.names import checked
from chipwise.errors import InputError

SMALL = "llama-3.1-8b"


@pytest.mark.parametrize(
    ("request_", "told", "fixed"),
    [
        (Request(model=SMALL, only=("p9.48xlarge",)), "--only: unknown", "p5.48xlarge"),
        (Request(model=SMALL, only=("nosuch",)), "'nosuch'", "catalog list"),
        (Request(model=SMALL, exclude=("g6e.xlarg",)), "--exclude: unknown", "g6e.xlarge"),
        (Request(model=SMALL, prices_usd_per_hour={"foo": 3.0}), "--price: unknown size 'foo'", "catalog list"),
        (Request(model=SMALL, prices_usd_per_hour={"p5": 3.0}), "--price: unknown size 'p5'", ""),
        (Request(model=SMALL, only=("p5.48xlarge",), exclude=("p5.48xlarge",)), "--exclude p5.48xlarge", "leave out"),
        (Request(model=SMALL, only=("p5.48xlarge",), exclude=("p5",)), "--exclude p5", "leave out"),
        (Request(model=SMALL, only=("trn2.48xlarge",), vendor="nvidia"), "--vendor nvidia", "leave out"),
        (Request(model=SMALL, only=("h100-sxm",), vendor="neuron"), "--vendor neuron", "leave out"),
        (Request(model=SMALL, engine="vllm", vendor="neuron"), "--engine vllm", "--vendor neuron"),
        (Request(model=SMALL, engine="neuron", vendor="nvidia"), "--engine neuron", "--vendor nvidia"),
        (Request(model=SMALL, engine="vllm", only=("trn2.48xlarge",)), "--engine vllm", "leave out"),
        (Request(model=SMALL, engine="vllm", purpose="lora"), "--for lora", "leave out --engine"),
        (Request(model=SMALL, availability=0.99, purpose="lora"), "--availability", "leave out"),
        (Request(model=SMALL, ha_factor=2.0, purpose="lora"), "--ha", "leave out"),
        (Request(model=SMALL, availability=1.0), "--availability 1", "99.9%"),
    ],
)
def test_it_is_refused(request_: Request, told: str, fixed: str) -> None:
    with pytest.raises(InputError) as caught:
        advise(request_)
    assert told in caught.value.what
    assert caught.value.why
    assert fixed in caught.value.fix
    assert caught.value.fix


def test_sizes_families_prefixes_chips_and_aliases_are_names() -> None:
    words = ("P5.48xlarge", "g6e", "p5*", "h100-sxm", "NVIDIA L4")
    named = checked(Request(model=SMALL, only=words), load_catalog())
    assert named.only == ("p5.48xlarge", "g6e", "p5*", "h100-sxm", "l4")


def test_one_size_of_a_family_may_be_left_out() -> None:
    request = Request(model=SMALL, only=("p5",), exclude=("p5.4xlarge",), vendor="nvidia", engine="vllm")
    assert checked(request, load_catalog()) == request


def test_a_price_is_found_whatever_its_spelling() -> None:
    named = checked(Request(model=SMALL, prices_usd_per_hour={"P5.48xlarge": 3.0}), load_catalog())
    assert named.prices_usd_per_hour == {"p5.48xlarge": 3.0}
