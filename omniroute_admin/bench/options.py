"""What is to be measured, checked before anything is built."""

import os
from collections.abc import Collection
from pathlib import Path

import msgspec

from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.plan import MIX

MOST = 100_000
MOST_WORKERS = 64


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes and choices of one run."""

    connections: int = 2_000
    models: int = 300
    providers: int = 40
    mix: dict[str, int] = msgspec.field(default_factory=MIX.copy)
    rounds: int = 200
    workers: int = min(os.cpu_count() or 1, MOST_WORKERS)
    only: tuple[str, ...] = ()
    with_abuse: bool = False
    database_url: str | None = None
    use_existing: bool = False
    json_file: Path | None = None

    @property
    def many_rounds(self) -> int:
        """Return how often something that takes a millisecond is done."""
        return self.rounds * 5

    @property
    def few_rounds(self) -> int:
        """Return how often something slow is done."""
        return max(3, self.rounds // 10)

    @property
    def tries(self) -> int:
        """Return how often it is tried to read an old answer."""
        return self.rounds * 5

    @property
    def seconds(self) -> float:
        """Return how long something that goes on beside others is watched."""
        return max(0.5, self.rounds / 20)


def check_options(options: Options, *, known: Collection[str]) -> None:
    """Check the sizes and the names of what is to be measured.

    Raises:
        BenchError: naming everything that cannot be.
    """
    problems = [
        f"--{name} {getattr(options, name)}: give a number from 1 to {highest}"
        for name, highest in _HIGHEST.items()
        if not 1 <= getattr(options, name) <= highest
    ]
    problems += [
        f"--only {name}: there is no such measure; --list names them" for name in options.only if name not in known
    ]
    if options.providers > min(options.connections, options.models) > 0:
        problems.append("--providers: there are more than connections or models, and each needs one of both")
    if options.use_existing and options.database_url is None:
        problems.append("--use-existing: name the database with --database-url")
    if options.json_file is not None and not options.json_file.absolute().parent.is_dir():
        problems.append(f"--json {options.json_file}: its folder is not there")
    if options.json_file is not None and options.json_file.is_dir():
        problems.append(f"--json {options.json_file}: it is a folder; name a file in it")
    if problems:
        raise BenchError("; ".join(problems) + ".")


_HIGHEST = {"connections": MOST, "models": MOST, "providers": MOST, "rounds": MOST, "workers": MOST_WORKERS}
