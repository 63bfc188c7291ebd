"""The connections with what the catalogue says of them, indexed to be found by id."""

from collections.abc import Iterable
from copy import copy

from billing_catalog.core.billing import CatalogIndex, classify
from ladder.core.judge import Account
from ladder.core.reasons import Code
from ladder.core.values import Connection
from omniroute_admin.common.core.names import NOAUTH

Key = tuple[str, str]
"""Provider and connection id."""


class Accounts:
    """All known connections; `globs` are by provider what tells its models apart (windows, cooldowns, exclusions)."""

    def __init__(self, *, connections: Iterable[Connection], catalog: CatalogIndex) -> None:
        """Classify each connection by the catalogue (B)."""
        self._catalog = catalog
        self._by_key = {_key(one): account_of(one, catalog) for one in connections}
        self._index()

    def _index(self) -> None:
        self._by_id = {key[1]: account for key, account in self._by_key.items() if key[1] != NOAUTH}
        self._keys_of: dict[str, list[Key]] = {}
        for key in self._by_key:
            self._keys_of.setdefault(key[0], []).append(key)
        self.globs = _globs_by_provider(self._by_key.values())

    @property
    def listed(self) -> Iterable[Account]:
        """Return all of them, in the order of the facts."""
        return self._by_key.values()

    def find(self, *, connection_id: str, provider: str) -> Account | Code:
        """Return the known connection of that id at that provider, or the code that says why not (P7)."""
        if connection_id == NOAUTH:
            return self._by_key.get((provider, NOAUTH)) or _keyless_path(provider)
        account = self._by_id.get(connection_id)
        if account is None:
            return Code.UNKNOWN_CONNECTION
        return account if account.connection.provider == provider else Code.PROVIDER_MISMATCH

    def with_changed(self, changed: Iterable[Connection]) -> "Accounts":
        """Return them with these in the place of those of the same provider and id, all of which are known."""
        anew = {_key(one): account_of(one, self._catalog) for one in changed}
        other = copy(self)
        other._by_key = self._by_key | anew
        other._by_id = self._by_id | {key[1]: account for key, account in anew.items() if key[1] != NOAUTH}
        providers = {provider for provider, _ in anew}
        again = _globs_by_provider(other._by_key[key] for provider in providers for key in self._keys_of[provider])
        kept = {provider: globs for provider, globs in self.globs.items() if provider not in providers}
        other.globs = kept | again
        return other


def account_of(one: Connection, catalog: CatalogIndex) -> Account:
    """Return a connection with its billing and overage (B)."""
    verdict = classify(
        catalog=catalog,
        provider=one.provider,
        connection_id=one.connection_id,
        auth_type=one.auth_type,
        overage_override=one.overage_override,
    )
    return Account(one, verdict)


def _key(one: Connection) -> Key:
    return one.provider, one.connection_id


def _keyless_path(provider: str) -> Account:
    """Return the connection `noauth` of a provider where none is stored: it is always known (SPEC 1)."""
    return account_of(Connection(NOAUTH, provider, "none"), {})


def _globs_by_provider(accounts: Iterable[Account]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for account in accounts:
        globs = account.globs
        if globs:
            found.setdefault(account.connection.provider, set()).update(globs)
    return {provider: tuple(sorted(globs)) for provider, globs in found.items()}
