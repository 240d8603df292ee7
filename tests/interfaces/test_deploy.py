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


def changed(tmp_path: Path, **changes: Any) -> str:
    """The plan of a file with some of it changed, in another file."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**json.loads(Path(PLAN).read_text(encoding="utf-8")), **changes}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("changes", "status", "family"),
    [
        ({"options": []}, 1, "infeasible"),
        ({"error": {"what": "no"}}, 2, "input"),
        ({"schema_version": 2}, 2, "input"),
        ({"options": [{"rank": 1}]}, 2, "input"),
        ({"model": {"name": "a\nkind: Secret"}}, 2, "input"),
    ],
)
def test_a_plan_that_cannot_be_deployed_is_told(
    tmp_path: Path, changes: dict[str, Any], status: int, family: str
) -> None:
    result = run("deploy", changed(tmp_path, **changes), "-o", str(tmp_path / "out"), "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["family"]) == (status, family)
    assert not (tmp_path / "out").exists()


def test_a_size_nobody_knows_is_told(tmp_path: Path) -> None:
    (option, *_) = json.loads(Path(PLAN).read_text(encoding="utf-8"))["options"]
    plan = changed(tmp_path, options=[{**option, "instance": "p9.48xlarge"}])
    result = run("deploy", plan, "--dry-run", "--json")
    assert result.exit_code in {2, 3}
    assert "p9.48xlarge" in json.loads(result.stdout)["error"]["what"]


def test_a_dry_run_holds_every_text_that_is_then_written(tmp_path: Path) -> None:
    told = {one["path"]: one["text"] for one in answer("deploy", PLAN, "--dry-run")["files"]}
    made = answer("deploy", PLAN, "-o", str(tmp_path))["files"]
    assert all("text" not in one for one in made)
    written = {path: (tmp_path / path).read_text(encoding="utf-8") for path in told}
    assert written == told


def test_lint_takes_one_file_and_a_warning_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "class.yaml"
    path.write_text(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: gpu}\n"
        "spec: {role: r, amiSelectorTerms: [{alias: al2023@latest}]}\n"
    )
    made = answer("deploy", "lint", str(path))
    assert [(one["rule"], one["severity"]) for one in made["findings"]] == [("ami-unpinned", "warning")]
    assert "ami-unpinned" in run("deploy", "lint", str(path), "--format", "md").stdout


def test_lint_of_what_is_no_yaml_answers_no(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: [Pod\n")
    result = run("deploy", "lint", str(tmp_path), "--json")
    assert (result.exit_code, json.loads(result.stdout)["findings"][0]["rule"]) == (1, "not-yaml")


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
