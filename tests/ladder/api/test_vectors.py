"""Every case with a known answer, through `POST /api/v1/evaluate` (SPEC 2, all rules)."""

import json
from typing import Any

import pytest

from tests.router import Router
from tests.shared import SHARED, needs_shared

OPTIONS = {"merge": {"mixed_rungs": "merge"}, "lowest": {"lowest_rung_only": True}}


def _cases(name: str) -> list[Any]:
    if SHARED is None:
        return []
    return [pytest.param(case, id=case["case"]) for case in json.loads((SHARED / "vectors" / name).read_text())]


def _ask(router: Router, case: dict[str, Any], label: str) -> dict[str, Any]:
    pool_id, _, mode = label.partition(" ")
    body = {**case["request"], "id": pool_id, "explain": True, **OPTIONS.get(mode, {})}
    response = router.post("/api/v1/evaluate", body)
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = response.json()
    return answer


def _pool(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "ref": entry["ref"],
            "rung": entry["rung"],
            "ids": entry["allowed_connection_ids"] or [entry["connection_id"]],
        }
        for entry in answer["candidates"]
    ]


@needs_shared
@pytest.mark.django_db
@pytest.mark.parametrize("case", _cases("pools.json"))
def test_a_pool_is_the_one_worked_out_by_hand(router: Router, case: dict[str, Any]) -> None:
    for label, expected in case["expect"].items():
        assert _pool(_ask(router, case, label)) == expected, label


@needs_shared
@pytest.mark.django_db
@pytest.mark.parametrize("case", _cases("beyond.json"))
def test_a_pool_and_every_exclusion_are_those_worked_out_by_hand(router: Router, case: dict[str, Any]) -> None:
    for label, expected in case["expect"].items():
        answer = _ask(router, case, label)
        assert _pool(answer) == expected["pool"], label
        left = sorted((out["ref"], out["connection_id"] or "", out["code"]) for out in answer["excluded"])
        assert left == sorted((ref, one or "", code) for ref, one, code in expected["excluded"]), label
