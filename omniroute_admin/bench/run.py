"""One run: build, serve, measure, tell, and leave nothing behind."""

import gc
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
import granian
import msgspec
from django.db import connection
from tqdm import tqdm

from omniroute_admin.bench.children import bench_environment, collect_static, serving
from omniroute_admin.bench.database import sqlite_url, use_database
from omniroute_admin.bench.ending import ending_as_by_ctrl_c, go_on
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.fleet import ACTOR, make_key, make_session, write_fleet
from omniroute_admin.bench.measures.every import Measure, chosen
from omniroute_admin.bench.options import Options
from omniroute_admin.bench.plan import plan_fleet
from omniroute_admin.bench.results import Result, line_of
from omniroute_admin.bench.stage import Stage, read_fleet
from omniroute_admin.common import clock
from omniroute_admin.common.services.keys import revoke_key


def run(options: Options) -> Generator[Result, None, None]:
    """Build what is to be measured, and yield every row as it comes; a measure that failed is a row that says so.

    Raises:
        BenchError: the database cannot be used, or the server does not start.
    """
    with staged(options) as stage:
        yield from measured(stage=stage, measures=chosen(options))


@contextmanager
def staged(options: Options) -> Iterator[Stage]:
    """Build a fleet, serve it, and yield what one works with; nothing is left behind.

    Raises:
        BenchError: the database cannot be used, or the server does not start.
    """
    with _folder() as var_dir, ending_as_by_ctrl_c():
        url = options.database_url or sqlite_url(var_dir / "bench.sqlite3")
        use_database(url, may_hold_connections=options.use_existing)
        if not options.use_existing:
            write_fleet(_plan(options), now=clock.now())
        with _stage(options, url=url, var_dir=var_dir) as stage:
            gc.collect()
            gc.freeze()
            yield stage


def environment_line(options: Options) -> dict[str, Any]:
    """Return what the numbers hold for, as the first of the JSON lines."""
    return {
        "name": "environment",
        "at": clock.now().isoformat(),
        "python": platform.python_version(),
        "django": django.get_version(),
        "granian": granian.__version__,
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": [round(one, 2) for one in os.getloadavg()],
        "database": connection.vendor,
        **{name: getattr(options, name) for name in ("connections", "models", "providers", "mix", "rounds", "workers")},
    }


def json_lines(options: Options, results: list[Result]) -> bytes:
    """Return the environment and every row, one line of JSON each."""
    lines = [environment_line(options), *(line_of(one) for one in results)]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def measured(*, stage: Stage, measures: dict[str, Measure]) -> Iterator[Result]:
    """Yield the rows of each measure; one that failed is a row that says so.

    Raises:
        KeyboardInterrupt: the run was told to end, also where leaving a measure then failed.
    """
    tqdm.monitor_interval = 0  # its thread would stand beside every child that is started
    with tqdm(measures.items(), unit=" measures", file=sys.stderr, disable=None) as bar:
        for name, measure in bar:
            go_on()
            bar.set_description(name)
            if bar.disable:  # no terminal to draw on
                sys.stderr.write(f"bench: {name}\n")
            try:
                yield from measure.run(stage)
            except (BenchError, OSError) as error:
                go_on()  # what fails as a measure is left after Ctrl-C stands in the place of that
                yield Result(name=name, failure=f"{type(error).__name__}: {error}")


def _plan(options: Options) -> Any:
    return plan_fleet(
        connections=options.connections, models=options.models, providers=options.providers, mix=options.mix
    )


@contextmanager
def _stage(options: Options, *, url: str, var_dir: Path) -> Iterator[Stage]:
    """Serve the product and yield what measures work with; who was let in for them is shut out again."""
    environment = bench_environment(database_url=url, var_dir=var_dir)
    collect_static(environment)
    key, secret = make_key(now=clock.now())
    user, cookie = make_session()
    try:
        with serving(workers=options.workers, environment=environment, log=var_dir / "server.log") as port:
            yield Stage(
                options=options,
                fleet=read_fleet(now=clock.now()),
                port=port,
                key=secret,
                cookie=cookie,
                var_dir=var_dir,
                environment=environment,
            )
    finally:
        revoke_key(key=key, actor=ACTOR, reason="the measurement has ended", now=clock.now())
        user.delete()


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="omniroute-bench-"))
    try:
        yield folder
    finally:
        connection.close()
        shutil.rmtree(folder, ignore_errors=True)
