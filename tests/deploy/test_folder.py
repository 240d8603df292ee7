"""Writing never overwrites what chipwise did not write, or what somebody changed since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chipwise.deploy.written.bundle import Bundle, File
from chipwise.deploy.written.folder import RECORD, write
from chipwise.errors import InputError


def bundle(**texts: str) -> Bundle:
    files = [
        File(path=path.replace("__", "/") + ".yaml", text=text, kind="Service", api_version="v1")
        for path, text in texts.items()
    ]
    return Bundle(files=tuple(files), warnings=())


def test_files_are_written_and_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    write(bundle(setup__one="1\n"), folder)
    write(bundle(setup__one="2\n"), folder)
    assert (folder / "setup" / "one.yaml").read_text(encoding="utf-8") == "2\n"


def test_what_is_no_longer_wanted_goes(tmp_path: Path) -> None:
    write(bundle(one="1\n", two="2\n"), tmp_path)
    write(bundle(one="1\n"), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "one.yaml"]


def test_a_foreign_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("mine\n", encoding="utf-8")
    with pytest.raises(InputError, match="is in the way") as refused:
        write(bundle(one="1\n", two="2\n"), tmp_path)
    assert "did not write" in refused.value.why
    assert [path.name for path in tmp_path.iterdir()] == ["one.yaml"]
    write(bundle(one="1\n"), tmp_path, force=True)
    assert (tmp_path / "one.yaml").read_text(encoding="utf-8") == "1\n"


def test_the_same_text_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("1\n", encoding="utf-8")
    write(bundle(one="1\n"), tmp_path)


def test_a_changed_file_is_kept(tmp_path: Path) -> None:
    write(bundle(one="1\n", two="2\n"), tmp_path)
    (tmp_path / "one.yaml").write_text("edited\n", encoding="utf-8")
    with pytest.raises(InputError, match="is in the way") as refused:
        write(bundle(one="3\n"), tmp_path)
    assert "changed since" in refused.value.why
    (tmp_path / "two.yaml").write_text("edited\n", encoding="utf-8")
    write(bundle(three="3\n"), tmp_path)
    assert (tmp_path / "two.yaml").read_text(encoding="utf-8") == "edited\n"


def test_a_folder_in_the_place_of_a_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").mkdir()
    with pytest.raises(InputError, match="is in the way"):
        write(bundle(one="1\n"), tmp_path)


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        write(bundle(one="1\n"), tmp_path / "out")


def test_a_record_of_somebody_else_deletes_nothing_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    write(bundle(one="1\n"), tmp_path)
    outside.write_text("1\n", encoding="utf-8")
    folder = tmp_path / "in"
    folder.mkdir()
    digest = json.loads((tmp_path / RECORD).read_text(encoding="utf-8"))["one.yaml"]
    (folder / RECORD).write_text(json.dumps({"../outside.yaml": digest}), encoding="utf-8")
    write(bundle(two="2\n"), folder)
    assert outside.exists()


@pytest.mark.parametrize("record", ["", "[]", '{"one.yaml": 1}', "{"])
def test_a_broken_record_is_no_record(tmp_path: Path, record: str) -> None:
    (tmp_path / RECORD).write_text(record, encoding="utf-8")
    write(bundle(one="1\n"), tmp_path)
    assert (tmp_path / "one.yaml").exists()
