"""`chipwise deploy` and `deploy lint`: exit statuses, JSON alone on stdout, files only where they may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from chipwise.interfaces.cli import cli
from chipwise.report.schema import schema

PLANS = Path(__file__).resolve().parent.parent / "deploy" / "plans"
PLAN = str(PLANS / "chat-8b.json")


def run(*arguments: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli, list(arguments), prog_name="chipwise", input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    result = run(*arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return dict(json.loads(result.stdout))


def test_files_are_written_and_told(tmp_path: Path) -> None:
    made = answer("deploy", PLAN, "-o", str(tmp_path / "out"))
    Draft202012Validator(schema("deploy")).validate(made)
    assert {"Deployment", "Service", "NodePool", "EC2NodeClass"} <= {file["kind"] for file in made["files"]}
    for file in made["files"]:
        text = Path(file["path"]).read_text(encoding="utf-8")
        if file["kind"]:
            document = yaml.safe_load(text)
            assert (document["kind"], document["apiVersion"]) == (file["kind"], file["api_version"])


def test_the_plan_may_come_from_stdin(tmp_path: Path) -> None:
    text = Path(PLAN).read_text(encoding="utf-8")
    made = answer("deploy", "-", "-o", str(tmp_path), stdin=text)
    assert made["files"]


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    made = answer("deploy", PLAN, "--dry-run", "-o", str(tmp_path / "out"))
    assert made["dry_run"]
    assert made["files"]
    assert list(tmp_path.iterdir()) == []
    assert answer("deploy", PLAN, "--dry-run")["files"][0]["path"] == "README.md"


def test_flags_may_stand_before_the_plan(tmp_path: Path) -> None:
    made = answer("deploy", "--target", "auto-mode", "-o", str(tmp_path), "--option", "2", PLAN)
    assert "NodeClass" in {file["kind"] for file in made["files"]}


def test_every_flag_reaches_the_files(tmp_path: Path) -> None:
    given = {
        "--name": "talk",
        "--namespace": "team",
        "--image": "a/b:1",
        "--role": "nodes",
        "--subnet-tag": "tier=private",
        "--security-group-tag": "efa=yes",
        "--reservation-tag": "team=a",
        "--account": "123456789012",
        "--ami-alias": "al2023@v20261101",
        "--prometheus": "http://metrics:9090",
        "--max-replicas": "7",
    }
    flags = [word for pair in given.items() for word in pair]
    run("deploy", PLAN, "-o", str(tmp_path), "--purchase", "reserved", *flags)
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(tmp_path.rglob("*.yaml")))
    for value in given.values():
        assert value.partition("=")[2] or value in text


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["deploy", PLAN], 2),
        (["deploy"], 2),
        (["deploy", "none.json", "-o", "x"], 2),
        (["deploy", PLAN, "-o", "x", "--option", "9"], 2),
        (["deploy", PLAN, "-o", "x", "--target", "gke"], 2),
        (["deploy", PLAN, "-o", "x", "--name", "a;b"], 2),
        (["deploy", PLAN, "-o", "x", "--subnet-tag", "novalue"], 2),
        (["deploy", PLAN, "-o", "x", "--target", "auto-mode", "--static"], 2),
        (["deploy", "lint"], 2),
        (["deploy", "lint", "none"], 2),
    ],
)
def test_wrong_input_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments, "--json")
    assert result.exit_code == status
    assert set(json.loads(result.stdout)["error"]) == {"what", "why", "fix", "family"}
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n", encoding="utf-8")
    assert run("deploy", PLAN, "-o", str(tmp_path)).exit_code == 2
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine\n"
    assert run("deploy", PLAN, "-o", str(tmp_path), "--force").exit_code == 0


def test_lint_finds_nothing_in_what_was_written(tmp_path: Path) -> None:
    run("deploy", PLAN, "-o", str(tmp_path))
    made = answer("deploy", "lint", str(tmp_path))
    Draft202012Validator(schema("deploy_lint")).validate(made)
    assert made == {"findings": []}


def test_lint_answers_no_on_an_error(tmp_path: Path) -> None:
    run("deploy", PLAN, "-o", str(tmp_path))
    workload = tmp_path / "serving" / "20-deployment.yaml"
    workload.write_text(
        workload.read_text(encoding="utf-8").replace("namespace: inference", "namespace: None"), "utf-8"
    )
    result = run("deploy", "lint", str(tmp_path), "--json")
    assert result.exit_code == 1
    made = json.loads(result.stdout)
    Draft202012Validator(schema("deploy_lint")).validate(made)
    (fault,) = [one for one in made["findings"] if one["rule"] == "namespace-none"]
    assert fault["file"] == "serving/20-deployment.yaml"
    text = run("deploy", "lint", str(tmp_path)).stdout
    assert "namespace-none" in text
    assert "serving/20-deployment.yaml" in text


def test_the_answers_are_pages(tmp_path: Path) -> None:
    for form in ("text", "md"):
        result = run("deploy", PLAN, "-o", str(tmp_path), "--format", form)
        assert result.exit_code == 0
        assert "Deployment" in result.stdout
    assert "no fault found" in run("deploy", "lint", str(tmp_path)).stdout


def test_a_plan_may_be_deployed_at_once(tmp_path: Path) -> None:
    result = run("plan", "llama-3.1-8b", "--for", "chat", "--deploy", str(tmp_path), "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["options"]
    assert "files written into" in result.stderr
    assert (tmp_path / "serving" / "20-deployment.yaml").exists()


def test_help_names_both_commands() -> None:
    text = run("deploy", "--help").stdout
    assert "--target" in text
    assert "deploy lint" in text
    assert "FOLDER" in run("deploy", "lint", "--help").stdout
