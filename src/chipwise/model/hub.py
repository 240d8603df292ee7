"""Fetches the small files of a Hugging Face repository that nothing local holds: configs, indexes, headers by range.

Needs the extra `hub` (huggingface_hub), which brings the endpoint (`HF_ENDPOINT`), the token and the cache's place.
No weights are fetched: of a safetensors or GGUF file only its header. What is fetched is kept in the hub's own cache.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from chipwise.errors import ChipwiseError, InputError, KnowledgeError
from chipwise.model.hub_cache import DESCRIPTIONS, cache_root
from chipwise.model.spec import ModelSpec

_REFERENCE = re.compile(
    r"^(?P<repo>\w[\w.-]{0,95}/[\w.-]{1,96}(?<!\.json))(/(?P<file>[\w./-]{1,200}\.(gguf|safetensors)))?(@(?P<revision>[\w./-]{1,96}))?$"
)
_BESIDE = ("hf_quant_config.json", "model.safetensors.index.json")
_HEADERS = (".safetensors", ".gguf")
_MOST_BYTES = 2**26
_STEPS = (2**20, 2**23, _MOST_BYTES)
_WAIT_S = "10"
_USED = ("constants", "errors", "utils")
_LISTED = 5


class UndescribedError(KnowledgeError):
    """The repository holds no config: a weight file's header may still tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A repository, the revision of it, and one file where the reference names one.

    >>> address("org/name@v1.0").revision
    'v1.0'
    """

    repo: str
    revision: str = "main"
    file: str = ""


def address(reference: str) -> Address | None:
    """The repository that `org/name`, `org/name@revision` or `org/name/file.gguf` means; None for any other text.

    >>> address("./config.json"), address("folder/config.json")
    (None, None)
    """
    found = _REFERENCE.match(reference)
    if found is None or ".." in reference:
        return None
    return Address(repo=found["repo"], revision=found["revision"] or "main", file=found["file"] or "")


def is_offline() -> bool:
    """Whether `HF_HUB_OFFLINE` forbids the network."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}


def fetched(where: Address) -> Path:
    """The folder that holds the repository's small files, fetched into the hub's cache.

    Raises:
        InputError: no such repository or revision, no access to it.
        UndescribedError: it holds no config.
        KnowledgeError: offline, the extra is not installed, the hub does not answer.
    """
    for name in DESCRIPTIONS:
        folder = _kept(where, name)
        if folder is not None:
            break
    else:
        raise _nothing(where)
    for beside in _BESIDE:
        _kept(where, beside)
    if name == "model_index.json":
        for part in _parts(folder / name):
            _kept(where, f"{part}/config.json")
    return folder


def _parts(index: Path) -> list[str]:
    try:
        held = json.loads(index.read_text(encoding="utf-8"))
    except ValueError:
        return []
    listed = held.items() if isinstance(held, dict) else ()
    return [name for name, value in listed if isinstance(value, list) and re.fullmatch(r"\w{1,64}", name)]


def _kept(where: Address, name: str) -> Path | None:
    """The folder of the snapshot with `name` in it; None where the repository has no such file."""
    repo = cache_root() / f"models--{where.repo.replace('/', '--')}"
    got = _get(where, name)
    if got is None:
        return None
    body, commit = got
    folder = repo / "snapshots" / commit
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)
    pointer = repo / "refs" / where.revision
    pointer.parent.mkdir(parents=True, exist_ok=True)
    pointer.write_text(commit, encoding="utf-8")
    return folder


def from_header(where: Address, read: Callable[[Path], ModelSpec]) -> ModelSpec:
    """What `read` makes of the header of the repository's weight file, of which as little is fetched as that takes.

    Raises:
        InputError: it is no weight file, or its header is longer than the most that is fetched.
    """
    name = where.file or _only_weights(where)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / Path(name).name
        for first in _STEPS:
            got = _get(where, name, first=first)
            if got is None:
                raise _nothing(where)
            file.write_bytes(got[0])
            try:
                return read(file)
            except InputError:
                if len(got[0]) < first or first == _STEPS[-1]:
                    raise
    raise _nothing(where)


def _only_weights(where: Address) -> str:
    got = _get(where, "", listing=True)
    listed = json.loads(got[0]) if got else {}
    held = [str(item.get("rfilename")) for item in listed.get("siblings", []) if isinstance(item, dict)]
    files = [name for name in held if name.endswith(_HEADERS)]
    if len(files) == 1:
        return files[0]
    if not files:
        raise _nothing(where)
    shown = ", ".join(files[:_LISTED])
    raise KnowledgeError(
        f"{where.repo} holds {len(files)} weight files and no config",
        why="which of them is meant is not said",
        fix=f"name one as {where.repo}/FILE: {shown}",
    )


def _get(where: Address, name: str, *, first: int = 0, listing: bool = False) -> tuple[bytes, str] | None:
    """A file's bytes (at most the `first` of them, where given) and the commit; None where the repository lacks it."""
    client = _client(where)
    if listing:
        url = f"{client.endpoint}/api/models/{where.repo}/revision/{where.revision}"
    else:
        url = f"{client.endpoint}/{where.repo}/resolve/{where.revision}/{name}"
    headers = dict(client.headers)
    if first:
        headers["Range"] = f"bytes=0-{first - 1}"
    try:
        with client.stream("GET", url, headers) as response:
            if response.status_code >= 400:
                response.read()
            client.check(response)
            commit = response.headers.get("x-repo-commit", "")
            return _body(where, response, first or _MOST_BYTES, cut=bool(first)), _safe(commit)
    except client.no_entry:
        return None
    except client.failed as error:
        raise _told(where, client.endpoint, error) from error


def _body(where: Address, response: Any, most: int, *, cut: bool) -> bytes:
    held = bytearray()
    for chunk in response.iter_bytes():
        held += chunk
        if len(held) > most and not cut:
            raise InputError(
                f"a description in {where.repo} is larger than {_MOST_BYTES} bytes",
                why="a config is a few kilobytes",
                fix="give the path of the model's own config.json",
            )
        if len(held) >= most:
            break
    return bytes(held[:most]) if cut else bytes(held)


def _safe(commit: str) -> str:
    return commit if re.fullmatch(r"[0-9a-f]{7,64}", commit) else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    """What of huggingface_hub is used: its session, headers, endpoint and errors."""

    endpoint: str
    headers: dict[str, str]
    stream: Callable[[str, str, dict[str, str]], Any]
    check: Callable[[Any], None]
    no_entry: type[Exception]
    failed: type[Exception]


def _wait_s() -> float:
    """Seconds to wait for an answer.

    Raises:
        InputError: HF_HUB_DOWNLOAD_TIMEOUT is no whole number of seconds, which is all that huggingface_hub reads.
    """
    said = os.environ.get("HF_HUB_DOWNLOAD_TIMEOUT")
    if said is None:
        return float(_WAIT_S)
    if not said.strip().isdecimal():
        raise InputError(
            f"HF_HUB_DOWNLOAD_TIMEOUT is {said[:40]!r}",
            why="huggingface_hub reads whole seconds",
            fix="set it to a whole number such as 10, or unset it",
        )
    return float(said)


def _client(where: Address) -> _Client:
    if is_offline():
        raise KnowledgeError(
            f"{where.repo} is not in the local cache, and HF_HUB_OFFLINE forbids to fetch it",
            why="no network is used in offline mode",
            fix="unset HF_HUB_OFFLINE, or give the path of the model's config.json",
        )
    _wait_s()  # huggingface_hub reads the variable when it is imported, and fails without a word where it is odd
    try:
        constants, errors, utils = (import_module(f"huggingface_hub.{name}") for name in _USED)
    except ImportError as error:
        raise KnowledgeError(
            f"{where.repo} is not known here, and the hub cannot be asked",
            why="the extra `hub` (huggingface_hub) is not installed",
            fix="pip install 'chipwise[hub]', or give the path of the model's config.json",
        ) from error
    wait_s = _wait_s()

    def stream(method: str, url: str, headers: dict[str, str]) -> Any:
        return utils.get_session().stream(method, url, headers=headers, timeout=wait_s, follow_redirects=True)

    return _Client(
        endpoint=os.environ.get("HF_ENDPOINT", constants.ENDPOINT).rstrip("/"),
        headers=utils.build_hf_headers(library_name="chipwise"),
        stream=stream,
        check=utils.hf_raise_for_status,
        no_entry=errors.EntryNotFoundError,
        failed=errors.HTTPError,
    )


# Status -> (family, what, why, fix); {repo}, {revision} and {endpoint} are filled in.
_STATUS: dict[int, tuple[type[ChipwiseError], str, str, str]] = {
    401: (
        InputError,
        "the hub does not show {repo} to you",
        "it is not there, or it is private or gated and no valid token was sent",
        "check the spelling; `hf auth login` or set HF_TOKEN",
    ),
    403: (
        InputError,
        "{repo} is gated, and your token has no access to it",
        "its owner grants access one by one",
        "ask for access at {endpoint}/{repo}, or give the path of a config.json you have",
    ),
    404: (
        InputError,
        "the hub has no {repo} at revision {revision}",
        "the repository or the revision does not exist",
        "check the spelling of both",
    ),
    429: (
        KnowledgeError,
        "the hub refuses more requests for now",
        "you are over its rate limit (429)",
        "wait a few minutes, or set HF_TOKEN for a higher limit",
    ),
}


def _told(where: Address, endpoint: str, error: Exception) -> ChipwiseError:
    """What a failed request means to the user."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", 0)
    if "Gated" in type(error).__name__:
        status = 403
    fields = {"repo": where.repo, "revision": where.revision, "endpoint": endpoint}
    if status in _STATUS:
        family, what, why, fix = _STATUS[status]
        return family(what.format(**fields), why=why, fix=fix.format(**fields))
    path = "give the path of the model's config.json"
    if status:
        return KnowledgeError(
            f"the hub failed to give {where.repo} (status {status})",
            why="the fault lies on its side" if status >= 500 else "it does not accept the request",
            fix=f"try again later, or {path}",
        )
    if "Timeout" in type(error).__name__:
        return KnowledgeError(
            f"the hub did not answer in time for {where.repo}",
            why="the network is slow or the hub is overloaded",
            fix=f"raise HF_HUB_DOWNLOAD_TIMEOUT (seconds), or {path}",
        )
    return KnowledgeError(
        f"the hub at {endpoint} cannot be reached for {where.repo}",
        why=f"the connection failed ({type(error).__name__})",
        fix=f"check the network and HF_ENDPOINT, or {path}",
    )


def _nothing(where: Address) -> UndescribedError:
    return UndescribedError(
        f"{where.repo} holds no {where.file or 'config.json, params.json or model_index.json'}",
        why="one of them describes the model",
        fix="name its weight file as org/name/FILE.gguf or org/name/FILE.safetensors, or another repository",
    )
