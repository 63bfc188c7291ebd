"""SPEC 4: OpenAPI 3.1 at /api/schema/, browsable at /api/docs/, assets local."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.staticfiles import finders
from django.test import Client
from openapi_spec_validator import validate

REFUSALS = {"400", "401", "403", "406", "429", "503"}
WITH_A_BODY = {"408", "411", "413", "415"}


@pytest.fixture(scope="module")
def schema() -> Any:
    return yaml.safe_load(Client().get("/api/schema/").content)


def test_the_schema_is_valid_openapi_3_1(schema: Any) -> None:
    validate(schema)
    assert schema["openapi"].startswith("3.1")
    assert any(path.startswith("/api/v1/") for path in schema["paths"])


def test_every_call_can_be_signed_and_answers_problems(schema: Any) -> None:
    assert schema["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            assert {"key": []} in operation["security"], (method, path)
            for status in REFUSALS | (WITH_A_BODY if "requestBody" in operation else set()):
                assert "application/problem+json" in operation["responses"][status]["content"], (method, path, status)
            # One for whatever is not named would hide what is answered and not described.
            assert not {"default", "500"} & set(operation["responses"]), (method, path)


def test_what_a_call_takes_has_no_other_members(schema: Any) -> None:
    schemas = schema["components"]["schemas"]
    assert schemas["CandidateDocumentRequest"]["additionalProperties"] is False
    assert schemas["ReadingDocumentRequest"]["additionalProperties"] is False


def test_a_call_that_makes_a_row_names_the_calls_about_it(schema: Any) -> None:
    made = schema["paths"]["/api/v1/connections"]["post"]["responses"]["201"]["links"]
    assert made["connections_explain"]["parameters"] == {"connection_id": "$response.body#/connection_id"}
    assert "windows_read" not in made
    hold = schema["paths"]["/api/v1/holds"]["post"]["responses"]["201"]["links"]
    assert list(hold) == ["holds_release"]


def test_the_docs_page_needs_nothing_from_elsewhere_and_nothing_inline(client: Client) -> None:
    response = client.get("/api/docs/")
    page = response.content.decode()
    assert "unsafe" not in response["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|https?://", page)
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    local = [address for address in addresses if address.startswith("/static/")]
    assert len(local) >= 4
    for address in local:
        found = finders.find(address.removeprefix("/static/"))
        assert found
        assert Path(found).is_file()
    (script,) = [address for address in addresses if "script" in address and address not in local]
    answer = client.get(script.replace("&amp;", "&"))
    assert answer["Content-Type"].startswith("application/javascript")
    assert "/api/schema/" in answer.content.decode()
    assert "cdn" not in answer.content.decode()
