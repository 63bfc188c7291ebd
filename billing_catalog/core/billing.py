"""Billing is a fact of the connection, not of the model (B1 to B5)."""

from collections.abc import Iterable, Mapping

from billing_catalog.core.values import Billing, CatalogRow, Matched, Overage, Verdict
from omniroute_admin.common.core.names import NOAUTH

CatalogIndex = Mapping[tuple[str, str | None], CatalogRow]

_KEYLESS_PATH = Verdict(Billing.KEYLESS, Overage.HARD_STOP, Matched.NOAUTH)
_UNCURATED = Verdict(Billing.UNKNOWN, Overage.UNKNOWN, Matched.NONE)


def index_catalog(rows: Iterable[CatalogRow]) -> CatalogIndex:
    """Return the rows by (provider, auth type), null meaning provider-wide; of duplicates the first wins."""
    index: dict[tuple[str, str | None], CatalogRow] = {}
    for row in rows:
        index.setdefault((row.provider, row.auth_type or None), row)
    return index


def classify(
    *,
    catalog: CatalogIndex,
    provider: str,
    connection_id: str,
    auth_type: str | None,
    overage_override: Overage | None = None,
) -> Verdict:
    """Return a connection's billing class and overage, and which row said so (B1 to B4)."""
    verdict = _catalog_verdict(catalog=catalog, provider=provider, connection_id=connection_id, auth_type=auth_type)
    if overage_override is None:
        return verdict
    return Verdict(verdict.billing, overage_override, verdict.matched, overridden=True)


def _catalog_verdict(*, catalog: CatalogIndex, provider: str, connection_id: str, auth_type: str | None) -> Verdict:
    if connection_id == NOAUTH:
        return _KEYLESS_PATH
    row = catalog.get((provider, auth_type)) if auth_type else None
    if row is not None:
        return Verdict(row.billing, row.overage, Matched.PROVIDER_AUTH_TYPE)
    row = catalog.get((provider, None))
    if row is not None:
        return Verdict(row.billing, row.overage, Matched.PROVIDER)
    return _UNCURATED
