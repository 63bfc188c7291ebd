"""The story that this product is for, told once from end to end through the HTTP API, with the clock passed in.

A plan is used up, traffic climbs to the cheap key, the router is refused for far too long, the key's budget is spent
in the last minute of the day of 25 hours, the day turns, the plan's quota resets, and everything comes back.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine

from ladder.models import RungFlip
from ladder.tasks import note_flips
from tests.factories import BillingEntryFactory, ModelPriceFactory
from tests.router import Router, make_router

PLAN_AND_KEY = [
    {"provider": "claude", "model": "opus", "connection_id": "plan"},
    {"provider": "openrouter", "model": "deepseek", "connection_id": "key"},
]


def utc(hour: int, minute: int, second: int = 0) -> datetime:
    """Return an instant of 2026-10-25, on which Berlin's clocks go back: its day ends at 23:00 UTC, after 25 hours."""
    return datetime(2026, 10, 25, hour, minute, second, tzinfo=UTC)


DAY = ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z")
NEXT_DAY = ("2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z")
DAY_TURNS = utc(23, 0)
PLAN_RESETS = utc(23, 30)
NEXT_RESET = PLAN_RESETS + timedelta(hours=5)


class Story:
    """One clock, one router, and the timeline that watches."""

    def __init__(self, router: Router, clock: time_machine.Traveller) -> None:
        self.router, self.clock = router, clock
        self._told = 0

    def at(self, instant: datetime) -> None:
        self.clock.move_to(instant)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        response = self.router.send(method, f"/api/v1/{path}", body)
        assert response.status_code in {200, 201}, response.content
        return response.json()  # type: ignore[attr-defined]

    def reads(self, percent: int, *, observed_at: datetime, reset_at: datetime = PLAN_RESETS) -> None:
        reading = {
            "connection_id": "plan",
            "window": "5h",
            "remaining_percent": percent,
            "observed_at": observed_at.isoformat(),
            "reset_at": reset_at.isoformat(),
        }
        assert self.call("post", "telemetry/readings", {"readings": [reading]})["accepted"] == 1

    def spends(self, *events: tuple[str, str, datetime]) -> dict[str, Any]:
        told = [
            {
                "event_id": name,
                "connection_id": "key",
                "model": "deepseek",
                "occurred_at": at.isoformat(),
                "cost_usd": cost,
            }
            for name, cost, at in events
        ]
        answer: dict[str, Any] = self.call("post", "telemetry/usage", {"events": told})
        return answer

    def pool(self, pool_id: str) -> Any:
        return self.call("post", f"pools/{pool_id}", {"candidates": PLAN_AND_KEY, "explain": True})

    def thrifty(self) -> list[str]:
        """Return where thrifty sends a request, in order."""
        return [f"{one['rung']}: {one['connection_id']}" for one in self.pool("auto/thrifty")["candidates"]]

    def left_out(self, pool_id: str) -> dict[str, tuple[str, str | None]]:
        """Return who is left out, with code and return."""
        return {one["connection_id"]: (one["code"], one["returns_at"]) for one in self.pool(pool_id)["excluded"]}

    def subscription(self) -> tuple[list[str], str | None]:
        """Return who is in auto/subscription, and when the plan is back where it is empty."""
        pool = self.pool("auto/subscription")
        returns_at = pool["empty"]["returns_at"] if pool["empty"] else None
        return [one["connection_id"] for one in pool["candidates"]], returns_at

    def cheap(self) -> tuple[str, str, tuple[str, str]]:
        """Return spend, what is left, and the window of the cheap rung's budget."""
        rungs = self.call("get", "occupancy")["rungs"]
        budget = next(one["budget"] for one in rungs if one["rung"] == "cheap")
        return budget["spent_usd"], budget["left_usd"], (budget["window_start"], budget["window_end"])

    def flips(self) -> list[str]:
        """Let the timeline look, and return what it tells that it did not tell before."""
        note_flips.delay()
        rows = list(RungFlip.objects.order_by("id").select_related("connection"))
        told, self._told = rows[self._told :], len(rows)
        return [_sentence(row) for row in told]


def _sentence(row: RungFlip) -> str:
    who = row.rung if row.connection is None else row.connection.connection_id
    return f"{row.at:%H:%M:%S} {who}: {row.from_state} > {row.to_state} ({row.cause})"


def climbs(at: str, cause: str) -> list[str]:
    return [f"{at} subscription: serving > idle ({cause})", f"{at} cheap: idle > serving ({cause})"]


def comes_back(at: str, cause: str) -> list[str]:
    return [f"{at} subscription: idle > serving ({cause})", f"{at} cheap: serving > idle ({cause})"]


@pytest.fixture
def story(db: None) -> Iterator[Story]:
    """A plan of Claude that stops hard, read at 60 %, and a cheap key with 5.00 a day, by Berlin's clock."""
    BillingEntryFactory(provider="claude", auth_type=None, billing="subscription", overage="hard-stop")
    BillingEntryFactory(provider="openrouter", auth_type=None, billing="metered", overage="meters-to-paid")
    ModelPriceFactory(provider="claude", model="opus", input_usd_per_million=Decimal(5))
    ModelPriceFactory(provider="openrouter", model="deepseek", input_usd_per_million=Decimal("0.5"))
    with time_machine.travel(utc(18, 0), tick=False) as clock:
        story = Story(make_router(), clock)
        for connection_id, provider in (("plan", "claude"), ("key", "openrouter")):
            story.call("post", "connections", {"connection_id": connection_id, "provider": provider})
        budget = {"amount_usd": "5.00", "period": "daily", "zone": "Europe/Berlin"}
        story.call("patch", "settings", {"rung_budgets": {"cheap": budget}, "reason": "five a day"})
        story.reads(60, observed_at=utc(18, 0))
        assert story.flips() == []
        yield story


def the_plan_is_usable(story: Story) -> None:
    """The plan is usable."""
    assert story.subscription() == (["plan"], None)
    assert story.thrifty() == ["subscription: plan", "cheap: key"]


def the_plan_is_used_up(story: Story) -> None:
    """It is used up at 2 %: exactly the cutoff is exhausted (Q4). Thrifty climbs; subscription never does (P3)."""
    story.at(utc(19, 0))
    story.reads(2, observed_at=utc(19, 0))
    assert story.thrifty() == ["cheap: key"]
    assert story.subscription() == ([], "2026-10-25T23:30:00Z")
    assert story.left_out("auto/thrifty") == {"plan": ("quota_exhausted", "2026-10-25T23:30:00Z")}
    assert story.flips() == [
        "18:03:00 plan: usable > stale (time)",
        "19:00:00 plan: stale > exhausted (reading)",
        *climbs("19:00:00", "reading"),
    ]


def the_router_is_refused(story: Story) -> None:
    """A request under way is refused for ten hours. The plan resets sooner: the cooldown is cut there (C1)."""
    story.at(utc(19, 1))
    refused = {"connection_id": "plan", "occurred_at": utc(19, 1).isoformat(), "status_code": 429, "cause": "quota"}
    answer = story.call("post", "telemetry/rate-limits", {"events": [refused | {"retry_after": 36000}]})
    assert answer["cooldowns"] == [
        {
            "connection_id": "plan",
            "asked_until": "2026-10-26T05:01:00Z",
            "effective_until": "2026-10-25T23:30:00Z",
            "clamped": True,
            "cause": "quota",
        }
    ]
    assert story.left_out("auto/thrifty") == {"plan": ("cooldown", "2026-10-25T23:30:00Z")}
    assert story.flips() == ["19:01:00 plan: exhausted > cooldown (cooldown)"]


def the_budget_is_spent(story: Story) -> None:
    """At 23:59 by Berlin's clock the cheap budget is spent. An event that is sent twice counts once."""
    story.at(utc(22, 59))
    assert story.cheap() == ("0", "5.00", DAY)
    before = story.spends(("e1", "2.00", utc(22, 58, 50)), ("e2", "2.50", utc(22, 58, 55)))
    again = story.spends(("e2", "2.50", utc(22, 58, 55)), ("e3", "0.50", utc(22, 59)))
    assert (before["accepted"], again["accepted"], again["duplicates"]) == (2, 1, 1)
    assert story.cheap() == ("5.00", "0", DAY)
    assert story.thrifty() == []
    assert story.left_out("auto/thrifty") == {
        "plan": ("cooldown", "2026-10-25T23:30:00Z"),
        "key": ("budget_spent", "2026-10-25T23:00:00Z"),
    }
    closed = story.router.post("/api/v1/pools/auto/thrifty", {"candidates": PLAN_AND_KEY})
    assert closed["Retry-After"] == "60"
    assert closed.json()["empty"]["code"] == "all_exhausted"  # type: ignore[attr-defined]
    assert story.flips() == ["22:59:00 key: usable > exhausted (budget)", "22:59:00 cheap: serving > idle (budget)"]


def the_day_turns(story: Story) -> None:
    """The window turns after 25 hours, and with the first instant of the new day the rung is open (M2, M3)."""
    story.at(DAY_TURNS - timedelta(microseconds=1))
    assert story.thrifty() == []
    story.at(DAY_TURNS)
    assert story.thrifty() == ["cheap: key"]
    # What happened before midnight belongs to the old day, though it is reported only now (M4).
    story.at(utc(23, 0, 10))
    assert story.spends(("late", "1.00", utc(22, 59, 59)), ("new", "0.25", utc(23, 0, 5)))["accepted"] == 2
    assert story.cheap() == ("0.25", "4.75", NEXT_DAY)
    assert story.flips() == ["23:00:00 key: exhausted > usable (budget)", "23:00:00 cheap: idle > serving (budget)"]


def the_plan_resets(story: Story) -> None:
    """The plan resets, and nobody has read it yet. Thrifty tries it again, since that costs nothing (P4).

    Subscription wants proof (P2), and the return is not known before the next reading (Q9).
    """
    story.at(PLAN_RESETS)
    assert story.thrifty() == ["subscription: plan", "cheap: key"]
    assert story.subscription() == ([], None)
    assert story.left_out("auto/subscription")["plan"] == ("reset_pending", None)
    assert story.flips() == ["23:30:00 plan: cooldown > pending (reset)", *comes_back("23:30:00", "reset")]


def the_plan_is_held(story: Story) -> None:
    """A reading says 4 %: above the cutoff, but once out a plan is held until it is seen above 5 % (Q4)."""
    story.at(utc(23, 31))
    story.reads(4, observed_at=utc(23, 31), reset_at=NEXT_RESET)
    assert story.left_out("auto/subscription")["plan"] == ("held_for_reentry", "2026-10-26T04:30:00Z")
    assert story.subscription() == ([], "2026-10-26T04:30:00Z")
    assert story.thrifty() == ["cheap: key"]
    assert story.flips() == ["23:31:00 plan: pending > held (reading)", *climbs("23:31:00", "reading")]


def everything_is_back(story: Story) -> None:
    """A reading says 60 %: everything is back on rung 0."""
    story.at(utc(23, 32))
    story.reads(60, observed_at=utc(23, 32), reset_at=NEXT_RESET)
    assert story.subscription() == (["plan"], None)
    assert story.thrifty() == ["subscription: plan", "cheap: key"]
    assert story.call("get", "occupancy")["serving_rung"] == "subscription"
    assert story.flips() == ["23:32:00 plan: held > usable (reading)", *comes_back("23:32:00", "reading")]


def test_the_plan_serves_traffic_climbs_one_rung_and_comes_back_the_moment_the_quota_resets(story: Story) -> None:
    the_plan_is_usable(story)
    the_plan_is_used_up(story)
    the_router_is_refused(story)
    the_budget_is_spent(story)
    the_day_turns(story)
    the_plan_resets(story)
    the_plan_is_held(story)
    everything_is_back(story)
