"""Asks every check, and goes on where one cannot be asked."""

from collections.abc import Iterator
from datetime import datetime

from omniroute_admin.doctor import access, configuration, database, machine, routing, work
from omniroute_admin.doctor.report import Check, Finding, Needs, Said, Verdict, error

_LACKING = {
    Needs.DATABASE: "Not asked: the database does not answer.",
    Needs.TABLES: "Not asked: the database does not answer, or is of another version.",
}
_GIVES = {database.REACHABLE.name: Needs.DATABASE, database.MIGRATED.name: Needs.TABLES}
"""What is known to work after a check that found no error."""

_IN_ORDER = (
    *configuration.CHECKS,
    *machine.CHECKS,
    database.REACHABLE,
    database.MIGRATED,
    *database.CHECKS,
    *work.CHECKS,
    *routing.CHECKS,
    *access.CHECKS,
)


def examine(*, now: datetime) -> Iterator[Finding]:
    """Yield what each check says, in a fixed order; one that fails is an error of its own."""
    has = Needs.NOTHING
    for check in _IN_ORDER:
        if check.needs > has:
            yield Finding(check.name, Verdict.NOT_APPLICABLE, _LACKING[check.needs], "")
            continue
        said = _ask(check, now)
        if said.verdict is not Verdict.ERROR:
            has = _GIVES.get(check.name, has)
        yield Finding(check.name, said.verdict, said.says, said.mend)


def _ask(check: Check, now: datetime) -> Said:
    try:
        return check.ask(now)
    except Exception as problem:  # noqa: BLE001 - the rest is to be checked all the same
        # Its text may hold what a log must not.
        return error(
            f"The check could not be made ({type(problem).__name__}).", "Look at the errors above and ask again."
        )
