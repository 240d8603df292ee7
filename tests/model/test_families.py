"""The families are registered once, each in its own file, and read by their own READERS."""

from __future__ import annotations

from importlib import import_module

import pytest

from chipwise.model.defaults import class_defaults
from chipwise.model.families import MODULES, known_types, reader
from chipwise.model.families.listed import listed_types


@pytest.mark.parametrize("module", sorted(MODULES))
def test_registered_types_are_those_of_the_file(module: str) -> None:
    readers = import_module(f"chipwise.model.families.{module}").READERS
    assert set(MODULES[module].split()) == set(readers)


def test_no_type_is_read_twice() -> None:
    listed = [name for types in MODULES.values() for name in types.split()]
    assert len(listed) == len(set(listed))
    assert not set(listed) & set(listed_types())
    assert sorted([*listed, *listed_types()]) == known_types()


def test_unknown_types_have_no_reader() -> None:
    assert reader("no_such_type") is None
    assert class_defaults("no_such_type") == {}
