"""Whatever the description allows, and much that it does not, is answered as it says: schemathesis at every verb."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks

from chipwise.interfaces.api.app import BASE, create_app
from chipwise.interfaces.api.settings import Settings

app = create_app(Settings(rate_per_minute=1_000_000))
description = schemathesis.openapi.from_asgi(f"{BASE}/openapi.json", app, headers={"host": "127.0.0.1"})

PROMISED = [
    checks.not_a_server_error,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.status_code_conformance,
    checks.unsupported_method,
    checks.allow_header_conformance,
]
"""A schema cannot say all that makes a question right (which flags go together), so a refusal is always allowed."""

pytestmark = pytest.mark.slow


@description.parametrize()
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(case: schemathesis.Case[Any]) -> None:
    if case.path.endswith("guide/check"):
        few: Any = {"only": ["8.1*"]}  # all cells take a minute
        if case.method == "GET":
            case.query = few
        else:
            case.body = few
    case.call_and_validate(headers={"host": "127.0.0.1"}, checks=PROMISED)
