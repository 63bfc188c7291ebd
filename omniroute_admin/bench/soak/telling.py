"""A soak on paper: a table for people, a line of JSON for each of its rows, and what is wrong with it."""

from collections.abc import Iterator
from typing import Any

from omniroute_admin.bench.results import Timing, timing_of
from omniroute_admin.bench.soak.calling import Calls
from omniroute_admin.bench.soak.run import Soaked
from omniroute_admin.bench.soak.verdict import ALLOWED_SHARE, SHORTEST, SPAN, TOLERANCE, Growth, growth_of, tenths_of

_MEGA = 1024 * 1024
FLAT = (
    f"memory is flat where a process's own pages grew, over the last two thirds of the run and by the straight line "
    f"through them, by no more than {ALLOWED_SHARE:.0%} in {SPAN / 60:.0f} minutes, and {TOLERANCE // _MEGA} MB once; "
    f"runs of less than {SHORTEST / 60:.0f} minutes are too short to say"
)


def faults_of(soaked: Soaked) -> list[str]:
    """Return what is wrong with a run, a sentence each; nothing where all is well."""
    found = [
        f"{one.kind.name}: {one.errors} calls were not answered as they must be: {'; '.join(one.examples)}"
        for one in soaked.calls
        if one.errors
    ]
    found += [
        f"{one.kind.name}: {missing:,} calls were due and not made: this machine takes fewer than {one.per_second:g} a "
        f"second; give a lower --rate"
        for one in soaked.calls
        if (missing := one.not_made(length=soaked.seconds)) and not soaked.was_cut
    ]
    found += [
        f"{name}: its memory grows: {growth.seemed / _MEGA:.1f} MB where {growth.allowed / _MEGA:.1f} MB are allowed"
        for name, growth in growths_of(soaked)
        if is_flat(soaked, growth) is False
    ]
    return found + [f"the ledger: {fault}" for fault in soaked.ledger_faults]


def growths_of(soaked: Soaked) -> list[tuple[str, Growth]]:
    """Return how each process grew."""
    return [(name, growth_of(samples, length=soaked.seconds)) for name, samples in sorted(soaked.memory.items())]


def is_flat(soaked: Soaked, growth: Growth) -> bool | None:
    """Tell whether a process's memory is flat; None where the run was too short to say."""
    return None if soaked.seconds < SHORTEST else growth.is_flat


def lines_of(soaked: Soaked) -> Iterator[dict[str, Any]]:
    """Yield the rows of a run as they go into lines of JSON; milliseconds and bytes."""
    yield {
        "name": "soak",
        "seconds": round(soaked.seconds, 1),
        "rate": soaked.rate,
        "calls": sum(len(one.made) for one in soaked.calls),
        "errors": soaked.errors,
        "revisions": soaked.revisions,
        "database_bytes_before": soaked.database_before,
        "database_bytes_after": soaked.database_after,
        "longest_queue": soaked.longest_queue,
        "ledger_rows": soaked.ledger_rows,
        "ledger_faults": list(soaked.ledger_faults),
        "was_cut": soaked.was_cut,
    }
    yield from (_line_of_calls(one, soaked.seconds) for one in soaked.calls if one.made)
    for name, growth in growths_of(soaked):
        samples = [[round(one.at, 1), one.held] for one in soaked.memory[name]]
        yield {
            "name": f"memory {name}",
            "first_bytes": growth.first,
            "last_bytes": growth.last,
            "most_bytes": growth.most,
            "per_10_minutes_bytes": round(growth.per_span),
            "is_flat": is_flat(soaked, growth),
            "samples": samples,
        }


def _line_of_calls(calls: Calls, seconds: float) -> dict[str, Any]:
    timing = timing_of([one.seconds for one in calls.made])
    tenths = tenths_of(calls.made, length=seconds)
    return {
        "name": calls.kind.name,
        "asked_per_second": round(calls.per_second, 3),
        "made_per_second": round(len(calls.made) / seconds, 3),
        "statuses": {str(status): count for status, count in sorted(calls.statuses.items())},
        "errors": calls.errors,
        "not_made": calls.not_made(length=seconds),
        **_times(timing),
        "tenths": [None if one is None else _times(one) for one in tenths],
    }


def _times(timing: Timing) -> dict[str, float]:
    return {f"{name}_ms": round(getattr(timing, name) * 1000, 3) for name in ("median", "p95", "p99")}


def table_of(soaked: Soaked) -> str:
    """Return the run as tables for people."""
    head = (
        f"{soaked.seconds / 60:.1f} minutes at {soaked.rate:g} readings and as many pool calls a second: "
        f"{sum(len(one.made) for one in soaked.calls):,} calls, {soaked.errors} errors, "
        f"{soaked.revisions:,} revisions, database {soaked.database_before / _MEGA:.1f} to "
        f"{soaked.database_after / _MEGA:.1f} MB, at most {soaked.longest_queue} messages waiting, "
        f"{soaked.ledger_rows:,} rows of the ledger with {len(soaked.ledger_faults)} faults"
    )
    return "\n\n".join([head, _columns(_call_rows(soaked)), _columns(_memory_rows(soaked)), FLAT])


def _call_rows(soaked: Soaked) -> Iterator[tuple[str, ...]]:
    yield ("call", "per s", "of", "errors", "median", "p95", "p99", "p95 of each tenth of the run, ms")
    for one in soaked.calls:
        if one.made:
            line = _line_of_calls(one, soaked.seconds)
            rates = (f"{line['made_per_second']:.2f}", f"{line['asked_per_second']:.2f}")
            times = (f"{line[name]:.1f}" for name in ("median_ms", "p95_ms", "p99_ms"))
            tenths = " ".join("-" if tenth is None else f"{tenth['p95_ms']:.0f}" for tenth in line["tenths"])
            yield (one.kind.name, *rates, str(one.errors), *times, tenths)


def _memory_rows(soaked: Soaked) -> Iterator[tuple[str, ...]]:
    yield ("own memory of", "settled", "at the end", "most", "in 10 minutes", "flat")
    for name, growth in growths_of(soaked):
        sizes = (f"{size / _MEGA:.1f} MB" for size in (growth.first, growth.last, growth.most))
        yield (name, *sizes, f"{growth.per_span / _MEGA:+.2f} MB", _FLAT[is_flat(soaked, growth)])


_FLAT = {True: "yes", False: "no", None: "too short to say"}


def _columns(rows: Iterator[tuple[str, ...]]) -> str:
    cells = list(rows)
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
