from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError

from ladder.models import Connection, QuotaWindow
from ladder.services.connections import create_connection, delete_connection, update_connection
from omniroute_admin.common.errors import Conflict, NotFound
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import BillingEntryFactory, ConnectionFactory, ProviderAliasFactory, QuotaWindowFactory
from tests.factories_ladder import NOW, OPERATOR

pytestmark = pytest.mark.django_db

BY = {"actor": OPERATOR, "reason": "a reason", "now": NOW}
LATER = NOW + timedelta(hours=1)


def create(connection_id="c1", provider="claude", **fields):
    return create_connection(connection_id=connection_id, provider=provider, **({"auth_type": "oauth"} | fields), **BY)


def update(connection, **changes):
    return update_connection(connection=connection, changes=changes, **BY)


def bad_fields(call, *args, **fields):
    with pytest.raises(ValidationError) as refused:
        call(*args, **fields)
    return set(refused.value.error_dict)


def test_names_are_canonical_on_the_way_in_spec_1():
    ProviderAliasFactory(alias="cc", provider="claude")
    row = create(provider=" CC ", auth_type=" OAuth ")
    stored = Connection.objects.get()
    assert (row.provider, row.auth_type) == (stored.provider, stored.auth_type) == ("claude", "oauth")


def test_a_change_is_history_with_who_why_and_when_and_moves_the_revision_spec_3():
    row, before = create(), current_revision()
    update(row, label="Team")
    delete_connection(connection=row, actor=OPERATOR, reason="left", now=LATER)
    history = row.history.order_by("history_id")
    assert [(act.history_type, act.history_change_reason, act.history_date) for act in history] == [
        ("+", "a reason", NOW),
        ("~", "a reason", NOW),
        ("~", "left", LATER),
    ]
    assert {act.history_actor for act in history} == {OPERATOR.name}
    assert current_revision() == before + 2


def test_what_does_not_differ_is_not_saved_again():
    row = create()
    before = current_revision()
    update(row, label="", provider="Claude", auth_type="OAUTH")
    assert (current_revision(), row.history.count()) == (before, 1)


def test_every_bad_field_is_named_at_once():
    assert bad_fields(
        create,
        connection_id="-no",
        provider="a b",
        auth_type="o auth",
        label="x" * 201,
        overage_override="never",
        excluded_models=["", "*opus*"],
    ) == {"connection_id", "provider", "auth_type", "label", "overage_override", "excluded_models"}
    assert not Connection.objects.exists()


@pytest.mark.parametrize("globs", [["a\x00b"], [" "], ["x" * 201], ["*", "*"], [4]])
def test_an_odd_list_of_globs_is_refused(globs):
    assert bad_fields(create, excluded_models=globs) == {"excluded_models"}


def test_noauth_has_the_auth_type_none_and_no_other_has_it_spec_1():
    assert create("noauth", auth_type=None).auth_type == "none"
    assert bad_fields(create, "noauth", "groq", auth_type="oauth") == {"auth_type"}
    assert bad_fields(create, "c1", auth_type="none") == {"auth_type"}


def test_an_id_is_unique_and_noauth_one_per_provider_spec_1():
    create("c1")
    create("noauth", auth_type=None)
    create("noauth", "groq", auth_type=None)
    for second in ({"connection_id": "c1", "provider": "codex"}, {"connection_id": "noauth", "auth_type": None}):
        with pytest.raises(Conflict):
            create(**second)


def test_a_new_connection_of_a_deleted_ones_id_inherits_nothing_spec_3():
    old = create(label="old")
    QuotaWindowFactory(connection=old)
    delete_connection(connection=old, **BY)
    new = create(provider="codex")
    assert new.pk != old.pk
    assert (new.label, new.windows.count(), Connection.objects.get(pk=old.pk).label) == ("", 0, "old")


def test_a_deleted_connection_cannot_be_changed_or_deleted_again():
    row = create()
    delete_connection(connection=row, **BY)
    with pytest.raises(NotFound):
        update(row, label="x")
    with pytest.raises(NotFound):
        delete_connection(connection=row, **BY)


def test_a_keyless_path_that_telemetry_spoke_of_becomes_a_stored_one_with_its_windows():
    implied = ConnectionFactory(noauth=True, provider="groq", is_implied=True)
    QuotaWindowFactory(connection=implied)
    row = create("noauth", "groq", auth_type=None)
    assert (row.pk, row.is_implied, QuotaWindow.objects.get().connection_id) == (implied.pk, False, row.pk)


def test_a_connection_keeps_its_id_and_provider():
    row = create()
    ProviderAliasFactory(alias="cc", provider="claude")
    update(row, provider="cc", connection_id="c1")
    assert bad_fields(update, row, provider="codex", connection_id="c2") == {"connection_id", "provider"}


@pytest.mark.parametrize("overage", ["meters-to-paid", "unknown"])
def test_declaring_hard_stop_against_the_catalogue_needs_a_written_reason_b4(overage):
    BillingEntryFactory(provider="claude", auth_type="oauth", overage=overage)
    fields = {"connection": create(), "changes": {"overage_override": "hard-stop"}, "actor": OPERATOR, "now": NOW}
    assert bad_fields(update_connection, reason=" ", **fields) == {"overage_override_reason"}
    assert update_connection(reason="switched off", **fields).overage_override_reason == "switched off"


def test_declaring_hard_stop_of_an_uncurated_provider_needs_a_written_reason_b4_b5():
    fields = {"connection_id": "c1", "provider": "claude", "auth_type": "oauth", "actor": OPERATOR, "now": NOW}
    assert bad_fields(create_connection, overage_override="hard-stop", reason="", **fields) == {
        "overage_override_reason"
    }
    row = create_connection(overage_override="hard-stop", overage_override_reason="seen", reason="", **fields)
    assert row.overage_override == "hard-stop"


def test_declaring_hard_stop_where_the_catalogue_does_needs_nothing_b4():
    BillingEntryFactory(provider="claude", auth_type=None, overage="hard-stop")
    fields = {"connection": create(), "actor": OPERATOR, "reason": "", "now": NOW}
    assert update_connection(changes={"overage_override": "hard-stop"}, **fields).overage_override == "hard-stop"


@pytest.mark.parametrize("overage", ["meters-to-paid", "unknown"])
def test_making_it_less_safe_needs_nothing_b4(overage):
    BillingEntryFactory(provider="claude")
    fields = {"connection": create(), "actor": OPERATOR, "reason": "", "now": NOW}
    assert update_connection(changes={"overage_override": overage}, **fields).overage_override == overage


def test_a_new_auth_type_asks_for_the_reason_again_b4():
    BillingEntryFactory(provider="claude", auth_type="oauth", overage="hard-stop")
    row = create(overage_override="hard-stop")
    Connection.objects.update(overage_override_reason="")
    row.refresh_from_db()
    assert bad_fields(update, row, auth_type="apikey") == {"overage_override_reason"}
    assert update(row, label="only this").label == "only this"


def test_taking_the_override_off_takes_its_reason_off():
    row = create(overage_override="hard-stop")
    assert row.overage_override_reason == "a reason"
    assert update(row, overage_override=None).overage_override_reason == ""
