"""One soak: build, serve, call for as long as is asked, look on, and say what came of it."""

import secrets
import sys
import threading
import time
from collections.abc import Sequence

import msgspec
from tqdm import tqdm

from ladder.selectors.ledger_faults import check_ledger
from omniroute_admin.bench.children import PATIENCE, working
from omniroute_admin.bench.ending import go_on
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.options import Options
from omniroute_admin.bench.run import staged
from omniroute_admin.bench.soak.calling import Calls, calls_of
from omniroute_admin.bench.soak.kinds import EXPECTED, kinds_of
from omniroute_admin.bench.soak.verdict import Sample
from omniroute_admin.bench.soak.watching import Watch, database_bytes
from omniroute_admin.bench.stage import Stage
from omniroute_admin.common.models import Heartbeat
from omniroute_admin.common.selectors.revision import current_revision

_LOOKS = 180
_LEAST_BETWEEN_LOOKS = 0.2


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run. `seconds` is how long it lasted; sizes are bytes."""

    seconds: float
    rate: float
    calls: Sequence[Calls]
    memory: dict[str, list[Sample]]
    longest_queue: int
    revisions: int
    database_before: int
    database_after: int
    ledger_rows: int
    ledger_faults: tuple[str, ...]
    was_cut: bool

    @property
    def errors(self) -> int:
        """Return how many calls were not answered as they must be."""
        return sum(one.errors for one in self.calls)


def soak(options: Options, *, seconds: float, rate: float) -> Soaked:
    """Call a fleet for so long, with `rate` readings a second and as many pool calls, the rest in proportion.

    Ctrl-C ends it early; what was seen until then is told.

    Raises:
        BenchError: the run cannot be made, or no work is done.
    """
    with staged(options) as stage, working(environment=stage.environment, log=stage.var_dir / "work.log"):
        _wait_for_work()
        return _soak(stage, seconds=seconds, rate=rate)


def _wait_for_work() -> None:
    """Return when scheduler and worker have started: what a process takes for that is no growth."""
    until = time.monotonic() + PATIENCE
    while not Heartbeat.objects.exists():
        if time.monotonic() > until:
            raise BenchError(f"scheduler and worker did nothing for {PATIENCE:.0f} s")
        time.sleep(_LEAST_BETWEEN_LOOKS)


def _soak(stage: Stage, *, seconds: float, rate: float) -> Soaked:
    run = secrets.token_hex(4)
    calls = calls_of(kinds_of(stage, run=run), times=rate / EXPECTED, port=stage.port)
    revision, size, watch = current_revision(), database_bytes(), Watch(stage.var_dir)
    began, stop = time.monotonic(), threading.Event()
    threads = [one for kind in calls for one in kind.threads(began=began, length=seconds, stop=stop)]
    was_cut = _look_on(threads, watch, began=began, seconds=seconds)
    stop.set()
    for thread in threads:
        thread.join()
    checked = check_ledger()
    return Soaked(
        seconds=min(seconds, time.monotonic() - began),
        rate=rate,
        calls=calls,
        memory=watch.samples,
        longest_queue=watch.longest_queue,
        revisions=current_revision() - revision,
        database_before=size,
        database_after=database_bytes(),
        ledger_rows=checked.rows,
        ledger_faults=tuple(checked.faults),
        was_cut=was_cut,
    )


def _look_on(threads: Sequence[threading.Thread], watch: Watch, *, began: float, seconds: float) -> bool:
    """Let the threads call and look at the processes meanwhile; tell whether a Ctrl-C ended it."""
    tqdm.monitor_interval = 0  # its thread would stand among those that call
    pause = max(_LEAST_BETWEEN_LOOKS, seconds / _LOOKS)
    try:
        for thread in threads:
            thread.start()
        with tqdm(total=round(seconds), unit="s", desc="soak", file=sys.stderr, disable=None) as bar:
            while any(thread.is_alive() for thread in threads):
                go_on()
                at = time.monotonic() - began
                watch.look(at=at)
                bar.update(min(round(at), bar.total) - bar.n)
                time.sleep(pause)
    except KeyboardInterrupt:
        return True
    return False
