"""Load the shipped facts: each once, never over an operator's edit, never back after a deletion (SPEC 3)."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.db import models

from billing_catalog.adapters.facts_file import EntryFact, FactsFile
from billing_catalog.models import BillingEntry, Curated, FreeProvider, LoadedFact, PriceSource, TierThresholds
from billing_catalog.selectors.aliases import alias_map
from omniroute_admin.common.core.names import canonical_provider
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

FACTS_ACTOR = Actor(name="load_facts")
REASON = "shipped facts"
FACTS_ORIGIN = "facts"


class Fact(msgspec.Struct, frozen=True):
    """One shipped fact: the key it has in its file, how its row is found, and what the row says."""

    model: type[models.Model]
    key: str
    identity: Mapping[str, Any]
    says: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The model in words, as `billing entry`."""
        return str(self.model._meta.verbose_name)


class Outcome(msgspec.Struct, frozen=True):
    """What became of one fact: added, updated, unchanged, kept (an operator's row) or left out (deleted by one)."""

    kind: str
    key: str
    what: str


def load_facts(*, facts: FactsFile, now: datetime, dry_run: bool = False) -> list[Outcome]:
    """Bring shipped facts into the catalogue, all in one transaction, and say what became of each.

    A row an operator edited stays; a row an operator deleted stays away; an unedited row follows the shipped fact.

    Raises:
        ValidationError: a fact is none that a row can hold; nothing is loaded.
    """
    plan = _plan(facts=facts)
    if dry_run or not any(is_new or outcome.what in {"added", "updated"} for _, _, outcome, is_new in plan):
        return [outcome for _, _, outcome, _ in plan]
    with deciding_write(wide_at=now):
        plan = _plan(facts=facts)
        for fact, row, outcome, _ in plan:
            _apply(fact=fact, row=row, what=outcome.what, now=now)
    return [outcome for _, _, outcome, _ in plan]


Step = tuple[Fact, models.Model | None, Outcome, bool]
"""A fact, its row if there is one, what becomes of it, and whether it was never loaded before."""


def _plan(*, facts: FactsFile) -> list[Step]:
    loaded = set(LoadedFact.objects.values_list("kind", "key"))
    steps: list[Step] = []
    for fact in _facts(facts=facts):
        row = fact.model._default_manager.filter(**fact.identity).first()
        was_loaded = (fact.kind, fact.key) in loaded
        what = _what(fact=fact, row=row, was_loaded=was_loaded)
        steps.append((fact, row, Outcome(kind=fact.kind, key=fact.key, what=what), not was_loaded))
    return steps


def _what(*, fact: Fact, row: models.Model | None, was_loaded: bool) -> str:
    if row is None:
        return "left out" if was_loaded else "added"
    if all(getattr(row, name) == value for name, value in fact.says.items()):
        return "unchanged"
    return "updated" if _is_unedited(row) else "kept"


def _is_unedited(row: models.Model) -> bool:
    if isinstance(row, Curated):
        return row.origin == FACTS_ORIGIN
    # The one row of thresholds comes with the tables, made by nobody: an operator's edit names one.
    last = row.history.order_by("-history_id").first()  # type: ignore[attr-defined]
    return last is None or last.history_actor in {"", FACTS_ACTOR.name}


def _apply(*, fact: Fact, row: models.Model | None, what: str, now: datetime) -> None:
    LoadedFact.objects.get_or_create(kind=fact.kind, key=fact.key, defaults={"loaded_at": now})
    if what not in {"added", "updated"}:
        return
    written = row or fact.model(**fact.identity)
    for name, value in fact.says.items():
        setattr(written, name, value)
    if isinstance(written, Curated):
        written.origin, written.updated_at = FACTS_ORIGIN, now
        written.created_at = written.created_at or now
    written.full_clean()
    stamp(instance=written, actor=FACTS_ACTOR, reason=REASON, now=now)
    written.save()


def _facts(*, facts: FactsFile) -> Iterator[Fact]:
    aliases = alias_map()

    def provider(raw: str) -> str:
        return canonical_provider(raw=raw, aliases=aliases)

    for entry in facts.billing_entries:
        identity: dict[str, Any] = {"provider": provider(entry.provider), "auth_type": entry.auth_type}
        yield Fact(BillingEntry, f"{entry.provider} {entry.auth_type or '*'}", identity, _entry(entry, facts=facts))
    for free in facts.free_providers:
        yield Fact(FreeProvider, free.provider, {"provider": provider(free.provider)}, {"reason": free.reason})
    for source in facts.price_sources:
        names = ("price_list", "capability_list", "sells_seats")
        says = {name: getattr(source, name) for name in names}
        yield Fact(PriceSource, source.provider, {"provider": provider(source.provider)}, says)
    yield Fact(TierThresholds, "thresholds", {"pk": 1}, msgspec.structs.asdict(facts.tier_thresholds))


def _entry(entry: EntryFact, *, facts: FactsFile) -> dict[str, Any]:
    return {
        "billing": entry.billing.value,
        "overage": entry.overage.value,
        "reason": entry.reason,
        "source_url": entry.source_url,
        "reviewed_on": facts.reviewed_on,
        "reviewed_by": facts.reviewed_by,
    }
