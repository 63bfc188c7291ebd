"""Checks of the fuzzer beside its own, for what a schema cannot say."""

from typing import Any

import schemathesis

TELEMETRY = "/api/v1/telemetry/"


@schemathesis.check
def refusals_say_what_is_wrong(ctx: Any, response: Any, case: Any) -> None:
    """A refusal is a problem document; one of a body or a query names what is bad in it (SPEC 4)."""
    if response.status_code < 400 or case.method == "HEAD":
        return
    kind = response.headers.get("content-type", [""])[0]
    assert kind == "application/problem+json", (response.status_code, kind, response.text[:200])
    problem = response.json()
    assert problem["status"] == response.status_code, problem
    assert problem["detail"], problem
    if problem["code"] in {"invalid_body", "invalid_query"}:
        assert problem["errors"], problem


@schemathesis.check
def every_item_is_accounted_for(ctx: Any, response: Any, case: Any) -> None:
    """Of telemetry every item is accepted, known, superseded or rejected by name (SPEC 4)."""
    if not case.operation.path.startswith(TELEMETRY) or case.method != "POST" or response.status_code != 200:
        return
    answer = response.json()
    items = case.body.get("readings", case.body.get("events"))
    rejected = {one["index"] for one in answer["rejected"]}
    told = sum(answer[name] for name in ("accepted", "duplicates", "superseded")) + len(rejected)
    assert told >= len(items), answer
    assert all(one["code"] and one["detail"] for one in answer["rejected"]), answer
