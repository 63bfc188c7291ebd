"""Store, change and delete connections (SPEC 1, SPEC 3, B4)."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from billing_catalog.core.billing import classify, index_catalog
from billing_catalog.core.values import Overage
from billing_catalog.mapping import read_catalog_rows
from billing_catalog.models import ProviderAlias
from ladder.core.timeline.causes import Cause
from ladder.models import Connection
from ladder.services.live_connections import imply_keyless, locked
from ladder.services.reading_items import is_storable
from ladder.services.trail import remember_accounts, remember_new
from omniroute_admin.common.core.names import NOAUTH, canonical_provider
from omniroute_admin.common.errors import Conflict, NotFound, field
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

_IDENTITY = ("connection_id", "provider")
_OVERAGE = {"auth_type", "overage_override", "overage_override_reason"}
_LONGEST_GLOB = 200
_NO_REASON = "Say why: the catalogue does not call this connection hard-stop (B4)."


def create_connection(
    *,
    connection_id: str,
    provider: str,
    auth_type: str | None = None,
    label: str = "",
    is_enabled: bool = True,
    overage_override: Overage | str | None = None,
    overage_override_reason: str = "",
    excluded_models: Sequence[str] = (),
    actor: Actor,
    reason: str,
    now: datetime,
) -> Connection:
    """Store a connection and return it. One that was deleted under the same id hands nothing on (SPEC 3).

    A keyless path of which only telemetry spoke so far becomes a stored one and keeps its windows.

    Raises:
        ValidationError: a field is not valid, or `hard-stop` is declared without a reason (B4); every one is named.
        Conflict: a live connection of that id exists.
    """
    with deciding_write():
        provider = resolve_provider(provider)
        row = _implied(connection_id, provider) or Connection(connection_id=connection_id, provider=provider)
        row.auth_type = auth_type  # type: ignore[assignment] # the field says null=True where no checker sees it
        _default_auth_type(row)
        row.label, row.is_enabled, row.is_implied = label, is_enabled, False
        row.overage_override, row.overage_override_reason = overage_override or None, overage_override_reason
        row.excluded_models = list(excluded_models)
        row.created_at = row.updated_at = now
        _default_override_reason(row, reason)
        check_connection(row)
        _refuse_second(row)
        stamp(instance=row, actor=actor, reason=reason, now=now)
        if row.pk is not None:
            remember_accounts(keys=[row.pk], cause=Cause.OPERATOR, now=now)
        saved = _saved(row)
        remember_new(key=saved.pk, cause=Cause.OPERATOR, now=now)
        return saved


def update_connection(
    *, connection: Connection, changes: Mapping[str, Any], actor: Actor, reason: str, now: datetime
) -> Connection:
    """Change fields of a connection and return it; nothing is written where nothing differs.

    Raises:
        ValidationError: a field is not valid, the identity would change, or `hard-stop` is declared without a reason
            (B4); every one is named.
        NotFound: it was deleted in between.
    """
    with deciding_write() as write:
        row = _locked_row(connection)
        before = {name: getattr(row, name) for name in changes}
        for name, value in changes.items():
            setattr(row, name, resolve_provider(value) if name == "provider" else value)
        _default_auth_type(row)
        if "overage_override" in changes:
            _default_override_reason(row, reason)
        check_connection(row, changed=set(changes), identity={name: before.get(name) for name in _IDENTITY})
        write.changed = any(getattr(row, name) != value for name, value in before.items())
        if write.changed:
            remember_accounts(keys=[row.pk], cause=Cause.OPERATOR, now=now)
            row.updated_at = now
            stamp(instance=row, actor=actor, reason=reason, now=now)
            row.save()
        return row


def delete_connection(*, connection: Connection, actor: Actor, reason: str, now: datetime) -> None:
    """Take a connection out of routing; it stays in the books, and telemetry knows it no more (SPEC 3).

    Raises:
        NotFound: it was deleted already.
    """
    with deciding_write():
        row = _locked_row(connection)
        remember_accounts(keys=[row.pk], cause=Cause.OPERATOR, now=now)
        row.deleted_at = row.updated_at = now
        stamp(instance=row, actor=actor, reason=reason, now=now)
        row.save()


def keyless_path(*, provider: str, actor: Actor, now: datetime) -> Connection:
    """Return the `noauth` of a provider (a valid id, or an alias), which is always known (SPEC 1).

    Where nobody spoke of it yet, a row is made that carries what is said of it; no stored pool lists it.
    """
    with deciding_write():
        name = resolve_provider(provider)
        row = locked(Connection.objects.live().filter(connection_id=NOAUTH, provider=name)).first()
        key = imply_keyless(provider=name, actor=actor, now=now) if row is None else row.pk
        return Connection.objects.get(pk=key)


def resolve_provider(raw: str) -> str:
    """Return the provider that a name means: case, blanks and alias resolved (SPEC 1)."""
    return canonical_provider(raw=raw, aliases=dict(ProviderAlias.objects.values_list("alias", "provider")))


def check_connection(
    row: Connection, *, changed: set[str] | None = None, identity: Mapping[str, Any] | None = None
) -> None:
    """Check a connection's fields and the rules across them; names become canonical on the row.

    `changed` None is a new row; `identity` is what a stored one's id and provider were where they are being set.

    Raises:
        ValidationError: naming every bad field.
    """
    errors: dict[str, list[Any]] = {}
    try:
        row.clean_fields()
    except ValidationError as error:
        errors = dict(error.error_dict)
    for name, problem in _problems(row, changed, identity or {}):
        errors.setdefault(name, []).append(problem)
    if errors:
        raise ValidationError(errors)


def check_override(row: Connection, *, reason: str) -> None:
    """Check that `hard-stop` declared against the catalogue has a reason; that of the change will do (B4).

    Raises:
        ValidationError: it has none.
    """
    _default_override_reason(row, reason)
    if _lacks_override_reason(row):
        raise ValidationError({"overage_override_reason": _NO_REASON})


def _problems(row: Connection, changed: set[str] | None, identity: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, before in identity.items():
        if before is not None and getattr(row, name) != before:
            yield name, "A connection keeps its id and provider: delete it and make another one."
    if (row.connection_id == NOAUTH) is not (row.auth_type == "none"):
        yield "auth_type", "The auth type none belongs to the connection noauth, and to no other."
    globs = row.excluded_models if isinstance(row.excluded_models, list) else []
    if not all(isinstance(glob, str) and is_storable(glob, length=_LONGEST_GLOB) for glob in globs):
        yield "excluded_models", f"A glob is 1 to {_LONGEST_GLOB} printable characters."
    if (changed is None or changed & _OVERAGE) and _lacks_override_reason(row):
        yield "overage_override_reason", _NO_REASON


def _lacks_override_reason(row: Connection) -> bool:
    """Tell whether `hard-stop` is declared against the catalogue without a written reason (B4)."""
    if row.overage_override != Overage.HARD_STOP.value or row.overage_override_reason.strip():
        return False
    said = classify(
        catalog=index_catalog(read_catalog_rows()),
        provider=row.provider,
        connection_id=row.connection_id,
        auth_type=row.auth_type,
    )
    return said.overage is not Overage.HARD_STOP


def _default_auth_type(row: Connection) -> None:
    if row.connection_id == NOAUTH and not row.auth_type:
        row.auth_type = "none"


def _default_override_reason(row: Connection, reason: str) -> None:
    """Take the reason of the change for that of an override without one; without an override there is none."""
    if row.overage_override is None:
        row.overage_override_reason = ""
    elif not row.overage_override_reason.strip():
        row.overage_override_reason = reason


def _implied(connection_id: str, provider: str) -> Connection | None:
    if connection_id != NOAUTH:
        return None
    return locked(Connection.objects.live().filter(connection_id=NOAUTH, provider=provider, is_implied=True)).first()


def _refuse_second(row: Connection) -> None:
    others = Connection.objects.live().filter(connection_id=row.connection_id).exclude(pk=row.pk)
    if row.connection_id == NOAUTH:
        others = others.filter(provider=row.provider)
    if others.exists():
        raise _second(row)


def _second(row: Connection) -> Conflict:
    detail = "A connection of that id exists already; an id is unique, noauth one per provider."
    names = _IDENTITY if row.connection_id == NOAUTH else ("connection_id",)
    return Conflict(detail, errors=[field(name, detail, code="conflict") for name in names])


def _saved(row: Connection) -> Connection:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:  # another process stored it between the look and the write
        raise _second(row) from None
    return row


def _locked_row(connection: Connection) -> Connection:
    row = locked(Connection.objects.live().filter(pk=connection.pk)).first()
    if row is None:
        raise NotFound("There is no such connection any more.")
    return row
