"""The acts on a connection from its page: each asks why, and is held against what was seen (SPEC 5, 2)."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.test import Client

from ladder.models import Connection, Cooldown, QuotaWindow
from ladder.services.connections import delete_connection, update_connection
from ladder.services.cooldowns import clear_cooldowns
from ladder.services.windows import update_window
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.revision import current_revision
from tests.browser.fleet import make_fleet

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
ALT, MAIN, DEVIN = (
    "/connections/claude/claude-alt",
    "/connections/claude/claude-main",
    "/connections/devin-desktop/devin-core",
)
JONAS = Actor(name="jonas")
WHY = "because the test says so"


@pytest.fixture(autouse=True)
def moment(settings: Any) -> Any:
    settings.TIME_ZONE_DISPLAY = "Europe/Berlin"
    with time_machine.travel(MOMENT, tick=False) as traveller:
        yield traveller


@pytest.fixture
def operator(client: Client, django_user_model: Any) -> Client:
    user = django_user_model.objects.create_user("mira", password="x")
    user.groups.add(Group.objects.get(name="operator"))
    client.force_login(user)
    make_fleet(now=clock.now())
    return client


def connection(path: str = ALT) -> Connection:
    return Connection.objects.get(connection_id=path.rpartition("/")[2])


def window(path: str, name: str) -> QuotaWindow:
    return QuotaWindow.objects.get(connection=connection(path), window=name)


def seen_in(client: Client, path: str, act: str) -> str:
    """Return the hidden values of an act's form, as the page of now shows it."""
    return seen_of(client.get(f"{path}?act={act}").content.decode(), path, act)


def seen_of(html: str, path: str, act: str) -> str:
    form = html[html.index(f'action="{path}/{act}"') :]
    found = re.search(r'name="seen" value="([^"]+)"', form)
    assert found
    return unescape(found[1])


def send(client: Client, path: str, act: str, *, seen: str | None = None, **values: str) -> Any:
    values = {"reason": WHY, **values}
    return client.post(f"{path}/{act}", values | {"seen": seen or seen_in(client, path, act)})


def words(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


ACTS_SENT = [
    (ALT, "clear-cooldown", {}, lambda: not Cooldown.objects.filter(connection=connection(ALT)).exists()),
    (MAIN, "mark-exhausted", {"window": "5h"}, lambda: window(MAIN, "5h").status == "exhausted"),
    (MAIN, "mute", {"window": "5h"}, lambda: window(MAIN, "5h").is_muted),
    (MAIN, "cutoff", {"window": "5h", "kind": "own", "exit_cutoff_percent": "20.5"},
     lambda: window(MAIN, "5h").exit_cutoff_percent == Decimal("20.5")),
    (MAIN, "pause", {}, lambda: not connection(MAIN).is_enabled),
    (DEVIN, "override", {"overage_override": "hard-stop"}, lambda: connection(DEVIN).overage_override == "hard-stop"),
    (MAIN, "edit", {"label": "mine", "auth_type": " OAUTH ", "excluded_models": "*opus*\r\n\r\n gpt-* "},
     lambda: (connection(MAIN).label, connection(MAIN).excluded_models) == ("mine", ["*opus*", "gpt-*"])),
    (MAIN, "delete", {}, lambda: connection(MAIN).deleted_at is not None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "act", "values", "is_done"), ACTS_SENT, ids=[act for _, act, _, _ in ACTS_SENT])
def test_an_act_is_done_told_and_kept_in_the_history_with_its_reason(
    operator: Client, path: str, act: str, values: dict[str, str], is_done: Any
) -> None:
    """SPEC 3: every manual act is history."""
    answer = send(operator, path, act, **values)
    assert (answer.status_code, answer["Location"]) == (302, path)
    assert is_done()
    page = operator.get(path)
    assert WHY in words(page)
    assert 'role="status"><p>' in page.content.decode()


@pytest.mark.parametrize(("path", "act", "values", "is_done"), ACTS_SENT, ids=[act for _, act, _, _ in ACTS_SENT])
def test_the_same_form_sent_twice_has_one_effect(
    operator: Client, path: str, act: str, values: dict[str, str], is_done: Any
) -> None:
    seen = seen_in(operator, path, act)
    send(operator, path, act, seen=seen, **values)
    before = current_revision()
    answer = send(operator, path, act, seen=seen, **values)
    assert (answer.status_code, answer["Location"]) == (302, path)
    assert current_revision() == before
    assert "nothing was changed" in words(operator.get(path))


@pytest.mark.parametrize(("path", "act", "values", "is_done"), ACTS_SENT, ids=[act for _, act, _, _ in ACTS_SENT])
def test_an_act_without_a_reason_is_refused_beside_the_field(
    operator: Client, path: str, act: str, values: dict[str, str], is_done: Any
) -> None:
    answer = send(operator, path, act, **values, reason="  ")
    assert answer.status_code == 400
    assert "Say why; it goes to the history." in words(answer)
    assert not is_done()


@pytest.mark.parametrize(("path", "act", "values", "is_done"), ACTS_SENT, ids=[act for _, act, _, _ in ACTS_SENT])
def test_a_form_that_we_did_not_write_is_refused(
    operator: Client, path: str, act: str, values: dict[str, str], is_done: Any
) -> None:
    answer = send(operator, path, act, seen="e30:forged", **values)
    assert answer.status_code == 400
    assert "This form is not whole any more." in words(answer)
    assert not is_done()


@pytest.mark.parametrize("role", ["viewer", "curator", "auditor"])
@pytest.mark.parametrize("act", [act for _, act, _, _ in ACTS_SENT] + ["resume", "unmute"])
def test_a_role_that_may_not_act_is_refused_and_told_who_may(
    operator: Client, django_user_model: Any, role: str, act: str
) -> None:
    user = django_user_model.objects.create_user("vera", password="x")
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    answer = client.post(f"{MAIN}/{act}", {"reason": WHY, "window": "5h"})
    assert answer.status_code == 403
    assert "operator or administrator" in words(answer)
    assert connection(MAIN).is_enabled


def test_an_act_is_not_done_by_following_a_link(operator: Client) -> None:
    answer = operator.get(f"{MAIN}/pause")
    assert answer["Location"] == f"{MAIN}?act=pause#a-pause"
    assert connection(MAIN).is_enabled


def test_an_act_needs_the_token_of_its_page(operator: Client, django_user_model: Any) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(django_user_model.objects.get(username="mira"))
    assert strict.post(f"{MAIN}/pause", {"reason": WHY}).status_code == 403
    assert connection(MAIN).is_enabled


def test_what_is_paused_is_resumed(operator: Client) -> None:
    send(operator, MAIN, "pause")
    assert "connection_disabled" in words(operator.get(MAIN)).replace("_ ", "_")
    send(operator, MAIN, "resume")
    assert connection(MAIN).is_enabled
    assert 'action="/connections/claude/claude-main/resume"' not in operator.get(MAIN).content.decode()


def test_what_is_muted_counts_again(operator: Client) -> None:
    """Q6."""
    send(operator, MAIN, "mute", window="5h")
    page = words(operator.get(MAIN))
    assert "The window 5h of claude/claude-main is muted." in page
    assert "Muted: it does not count." in page
    send(operator, MAIN, "unmute", window="5h")
    assert not window(MAIN, "5h").is_muted


def test_a_cutoff_of_ones_own_is_taken_away_again(operator: Client) -> None:
    """Q7."""
    send(operator, MAIN, "cutoff", window="5h", kind="own", exit_cutoff_percent="0")
    assert window(MAIN, "5h").exit_cutoff_percent == 0
    assert "The cutoff of claude/claude-main 5h is saved." in words(operator.get(MAIN))
    send(operator, MAIN, "cutoff", window="5h", kind="settings", exit_cutoff_percent="7")
    assert window(MAIN, "5h").exit_cutoff_percent is None


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"kind": "own", "exit_cutoff_percent": ""},
            "Give a percentage from 0 to 100, or choose that of the settings.",
        ),
        ({"kind": "own", "exit_cutoff_percent": "2,5"}, "Write the decimals after a point, as in 2.5."),
        ({"kind": "own", "exit_cutoff_percent": "101"}, "less than or equal to 100"),
        ({"kind": "own", "exit_cutoff_percent": "-1"}, "greater than or equal to 0"),
        ({"kind": "own", "exit_cutoff_percent": "NaN"}, "Enter a number."),
        ({"kind": "own", "exit_cutoff_percent": "1.123456789"}, "decimal places"),
        ({"kind": "both", "exit_cutoff_percent": "2"}, "Select a valid choice"),
        ({"kind": "own", "exit_cutoff_percent": "2", "window": "nothing"}, "Select a valid choice"),
    ],
)
def test_a_cutoff_that_cannot_be_is_refused_beside_its_field(
    operator: Client, values: dict[str, str], told: str
) -> None:
    answer = send(operator, MAIN, "cutoff", **{"window": "5h"} | values)
    assert answer.status_code == 400
    assert told in words(answer)
    assert window(MAIN, "5h").exit_cutoff_percent is None


def test_every_bad_field_is_named_at_once_and_what_was_typed_stays(operator: Client) -> None:
    answer = send(operator, MAIN, "edit", label="x" * 201, auth_type="two words", excluded_models="a\na", reason="")
    text = words(answer)
    assert "Ensure this value has at most 200 characters" in text
    assert "Say why; it goes to the history." in text
    answer = send(operator, MAIN, "edit", label="kept as typed", auth_type="two words", excluded_models="a\na")
    text = words(answer)
    assert answer.status_code == 400
    assert "An auth type is letters, digits and ._-" in text
    assert "A text stands twice in the list." in text
    assert 'value="kept as typed"' in answer.content.decode()


def test_hard_stop_is_declared_with_the_reason_of_the_act(operator: Client) -> None:
    """B4: less safe needs nothing, hard-stop a written reason; an older reason is no reason for another override."""
    send(operator, DEVIN, "override", overage_override="unknown", reason="first")
    send(operator, DEVIN, "override", overage_override="hard-stop", reason="pay-as-you-go is off since May")
    assert connection(DEVIN).overage_override_reason == "pay-as-you-go is off since May"
    send(operator, DEVIN, "override", overage_override="", reason="back to the catalogue")
    row = connection(DEVIN)
    assert (row.overage_override, row.overage_override_reason) == (None, "")


def test_a_connection_is_marked_exhausted_until_an_instant_of_the_display_zone(operator: Client) -> None:
    """Q2."""
    send(operator, MAIN, "mark-exhausted", window="", reset_at="2026-08-27T12:00")
    for name in ("5h", "weekly"):
        assert window(MAIN, name).status == "exhausted"
        assert window(MAIN, name).reset_at == datetime(2026, 8, 27, 10, tzinfo=UTC)


def test_marking_until_another_reset_is_another_act(operator: Client, moment: Any) -> None:
    send(operator, MAIN, "mark-exhausted", window="5h")
    moment.shift(1)
    answer = send(operator, MAIN, "mark-exhausted", window="5h", reset_at="2026-08-27T13:00")
    assert answer.status_code == 302
    assert window(MAIN, "5h").reset_at == datetime(2026, 8, 27, 11, tzinfo=UTC)


def test_a_connection_without_windows_is_marked_all_the_same(operator: Client) -> None:
    path = "/connections/opencode/noauth"
    assert send(operator, path, "mark-exhausted", window="").status_code == 302
    assert Connection.objects.get(provider="opencode").windows.get().window == "by hand"


@pytest.mark.parametrize(
    ("reset_at", "told"),
    [
        ("2026-08-27T09:00", "The reset has passed already."),
        ("2026-03-29T02:30", "interpreted in time zone Europe/Berlin"),
        ("soon", "Enter a valid date/time."),
        ("0001-01-01T00:00", "beyond the calendar"),
        ("9999-12-31T23:59", "reset"),
    ],
)
def test_a_reset_that_cannot_be_is_refused_beside_its_field(operator: Client, reset_at: str, told: str) -> None:
    answer = send(operator, MAIN, "mark-exhausted", window="5h", reset_at=reset_at)
    assert answer.status_code == 400
    assert told in words(answer)
    assert window(MAIN, "5h").status == "safe"


def test_one_of_several_cooldowns_is_cleared_and_the_others_stay(operator: Client) -> None:
    """C3: one per connection, model and cause."""
    row = connection(ALT)
    other = Cooldown.objects.create(
        connection=row, cause="rate_limit", model="m", asked_until=MOMENT + timedelta(hours=1),
        effective_until=MOMENT + timedelta(hours=1), reported_at=MOMENT,
    )  # fmt: skip
    send(operator, ALT, "clear-cooldown", cooldown=str(other.pk))
    assert [one.cause for one in Cooldown.objects.filter(connection=row)] == ["quota"]


def test_one_of_several_cooldowns_cleared_twice_takes_no_other_with_it(operator: Client) -> None:
    row = connection(ALT)
    other = Cooldown.objects.create(
        connection=row, cause="ban", asked_until=None, effective_until=None, reported_at=MOMENT
    )
    seen = seen_in(operator, ALT, "clear-cooldown")
    for _ in range(2):
        send(operator, ALT, "clear-cooldown", seen=seen, cooldown=str(other.pk))
    assert [one.cause for one in Cooldown.objects.filter(connection=row)] == ["quota"]


def test_a_cooldown_that_was_reported_meanwhile_is_not_cleared_unseen(operator: Client) -> None:
    seen = seen_in(operator, ALT, "clear-cooldown")
    Cooldown.objects.create(
        connection=connection(ALT), cause="ban", asked_until=None, effective_until=None, reported_at=MOMENT
    )
    assert send(operator, ALT, "clear-cooldown", seen=seen).status_code == 302
    assert [one.cause for one in Cooldown.objects.filter(connection=connection(ALT))] == ["ban"]


def test_a_cooldown_that_was_lengthened_meanwhile_is_told_before_it_is_cleared(operator: Client) -> None:
    seen = seen_in(operator, ALT, "clear-cooldown")
    Cooldown.objects.filter(connection=connection(ALT)).update(
        asked_until=MOMENT + timedelta(hours=9), effective_until=MOMENT + timedelta(hours=9)
    )
    answer = send(operator, ALT, "clear-cooldown", seen=seen)
    assert answer.status_code == 409
    assert "Someone else changed this while you wrote." in words(answer)
    assert Cooldown.objects.filter(connection=connection(ALT)).exists()


def test_a_cooldown_that_another_cleared_is_gone_and_nothing_more_is_done(operator: Client) -> None:
    seen = seen_in(operator, ALT, "clear-cooldown")
    clear_cooldowns(connection=connection(ALT), causes=None, actor=JONAS, reason="", now=clock.now())
    assert send(operator, ALT, "clear-cooldown", seen=seen).status_code == 302
    assert "nothing was changed" in words(operator.get(ALT))


def change(path: str, **changes: Any) -> None:
    update_connection(connection=connection(path), changes=changes, actor=JONAS, reason="his reason", now=clock.now())


def test_a_stale_form_is_refused_with_what_the_other_changed_and_nothing_is_saved(operator: Client) -> None:
    """SPEC 5: the second is told what changed."""
    seen = seen_in(operator, MAIN, "edit")
    change(MAIN, label="jonas's label")
    answer = send(operator, MAIN, "edit", seen=seen, label="my label", auth_type="oauth", excluded_models="")
    text = words(answer)
    assert answer.status_code == 409
    assert "jonas's label" in text
    assert "jonas, 10:12" in text
    assert "his reason" in text
    assert "my label" in text
    assert connection(MAIN).label == "jonas's label"


@pytest.mark.parametrize(("choice", "label"), [("mine", "my label"), ("theirs", "jonas's label")])
def test_after_a_conflict_each_field_is_chosen_and_the_rest_is_saved(operator: Client, choice: str, label: str) -> None:
    seen = seen_in(operator, MAIN, "edit")
    change(MAIN, label="jonas's label")
    values = {"label": "my label", "auth_type": "oauth", "excluded_models": "*opus*"}
    refused = send(operator, MAIN, "edit", seen=seen, **values).content.decode()
    fresh = seen_of(refused, MAIN, "edit")
    answer = send(operator, MAIN, "edit", seen=fresh, **values, **{"keep:label": choice})
    assert answer.status_code == 302
    assert (connection(MAIN).label, connection(MAIN).excluded_models) == (label, ["*opus*"])


def test_a_field_that_only_the_other_changed_is_not_undone(operator: Client) -> None:
    seen = seen_in(operator, MAIN, "edit")
    change(MAIN, auth_type="cookie")
    refused = send(operator, MAIN, "edit", seen=seen, label="my label", auth_type="oauth", excluded_models="")
    assert refused.status_code == 409
    assert "not touched" in words(refused)
    fresh = seen_of(refused.content.decode(), MAIN, "edit")
    send(operator, MAIN, "edit", seen=fresh, label="my label", auth_type="oauth", excluded_models="",
         **{"keep:auth_type": "theirs"})  # fmt: skip
    assert (connection(MAIN).label, connection(MAIN).auth_type) == ("my label", "cookie")


def test_a_window_that_another_changed_is_told(operator: Client) -> None:
    seen = seen_in(operator, MAIN, "cutoff")
    update_window(window=window(MAIN, "5h"), changes={"exit_cutoff_percent": "30"}, actor=JONAS, reason="keep more",
                  now=clock.now())  # fmt: skip
    values = {"window": "5h", "kind": "own", "exit_cutoff_percent": "10"}
    answer = send(operator, MAIN, "cutoff", seen=seen, **values)
    assert answer.status_code == 409
    assert "jonas, 10:12 : keep more" in words(answer)
    assert send(operator, MAIN, "cutoff", seen=seen, **values | {"window": "weekly"}).status_code == 302


def test_both_coming_to_the_same_is_no_conflict(operator: Client) -> None:
    seen = seen_in(operator, MAIN, "pause")
    change(MAIN, is_enabled=False)
    assert send(operator, MAIN, "pause", seen=seen).status_code == 302


def test_an_act_on_a_connection_that_was_deleted_meanwhile_says_so(operator: Client) -> None:
    seen = seen_in(operator, MAIN, "pause")
    delete_connection(connection=connection(MAIN), actor=JONAS, reason="", now=clock.now())
    answer = send(operator, MAIN, "pause", seen=seen)
    assert (answer.status_code, answer["Location"]) == (302, MAIN)
    assert "was deleted already: nothing was changed." in words(operator.get(MAIN))


def test_a_reason_of_ten_thousand_characters_is_kept_and_shown_as_text(operator: Client) -> None:
    reason = "<b>\u202e" + "長い理由" * 2499
    assert send(operator, MAIN, "pause", reason=reason).status_code == 302
    page = operator.get(MAIN)
    assert "<b>\u202e" not in page.content.decode()
    assert "長い理由" in page.content.decode()
    assert send(operator, MAIN, "resume", reason="x" * 10_001).status_code == 400


@pytest.mark.parametrize("name", ["gone", "\x00", "x" * 500, ""])
@pytest.mark.parametrize("act", ["mute", "unmute", "cutoff", "mark-exhausted"])
def test_a_window_that_is_not_there_is_refused_in_words(operator: Client, act: str, name: str) -> None:
    send(operator, MAIN, "mute", window="5h")
    if act == "mark-exhausted" and not name:
        return
    answer = send(operator, MAIN, act, window=name, kind="own", exit_cutoff_percent="3")
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()


def test_deleting_says_what_stays(operator: Client) -> None:
    """SPEC 3."""
    assert "Its history and what it spent stay in the books." in words(operator.get(f"{MAIN}?act=delete"))


def test_a_window_named_like_a_field_fills_no_field(operator: Client) -> None:
    QuotaWindow.objects.create(connection=connection(MAIN), window="reason", exit_cutoff_percent=Decimal(33))
    html = operator.get(f"{MAIN}?act=cutoff&window=reason").content.decode()
    assert re.search(r'id="cutoff-reason"[^>]*>\s*</textarea>', html)
    assert 'name="exit_cutoff_percent" value="33"' in html
