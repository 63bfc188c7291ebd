"""A database written by OmniRoute 3.7.9 itself, with its odd rows."""

from collections import Counter
from decimal import Decimal

import pytest

from ladder.adapters.omniroute import OmnirouteContents, read_omniroute
from tests.ladder.adapters.omniroute_file import NOW
from tests.shared import needs_shared, shared_path

pytestmark = needs_shared


@pytest.fixture(scope="module")
def contents() -> OmnirouteContents:
    return read_omniroute(path=shared_path("omniroute/storage.sqlite"), now=NOW)


def test_every_connection_is_read(contents):
    assert len(contents.connections) == contents.seen.connections == 30
    assert Counter(c.auth_type for c in contents.connections) == {"oauth": 13, "apikey": 15, "cookie": 1, None: 1}
    assert [c.connection_id for c in contents.connections if c.provider == "gemini-cli"] == ["legacy-conn-2"]


def test_the_labels_tell_all_connections_apart(contents):
    assert len({connection.label for connection in contents.connections}) == 30


def test_every_window_has_its_last_reading(contents):
    assert (contents.seen.snapshots, contents.seen.windows, len(contents.readings)) == (2067, 26, 25)
    by_window = {(r.connection_id[:8], r.window): r for r in contents.readings}
    assert by_window["c94807a0", "5h"].remaining_percent == Decimal("57.5")
    assert by_window["c94807a0", "weekly:sonnet"].model == "*sonnet*"
    assert by_window["6bb7ba1e", "gpt-oss-120b-medium"].remaining_percent == Decimal("86.66667")
    assert by_window["33fc01cb", "chat"].unlimited
    assert by_window["dd90d7c7", "tokens"].status == "unknown"
    assert {r.status for r in contents.readings if r.connection_id.startswith("e425333f")} == {"exhausted"}
    assert by_window["065078c3", "weekly"].status == "safe"
    assert ("6bb7ba1e", "credits") not in by_window


def test_the_cooldowns_that_run_are_read(contents):
    found = {(c.provider, c.cause, c.until and c.until.year) for c in contents.cooldowns}
    assert found == {
        ("gemini-cli", "ban", None),
        ("openai", "rate_limit", 2026),
        ("openai", "auth", None),
        ("codex", "quota", 2027),
        ("codex", "auth", None),
        ("deepseek", "quota", None),
        ("groq", "rate_limit", 2026),
    }


def test_every_odd_row_is_reported(contents):
    assert Counter((p.table, p.code) for p in contents.problems) == {
        ("key_value", "bad_cache_entry"): 1,
        ("key_value", "unknown_connection"): 1,
        ("quota_snapshots", "not_a_plan_window"): 1,
        ("provider_connections", "unknown_status"): 1,
        ("provider_connections", "bad_instant"): 1,
        ("provider_connections", "long_cooldown"): 1,
    }
