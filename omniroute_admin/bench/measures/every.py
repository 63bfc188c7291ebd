"""Every measure by its name, in the order in which they run."""

from collections.abc import Callable, Iterator

import msgspec

from omniroute_admin.bench.measures import abused, core, pages, pools, scale, telemetry, together
from omniroute_admin.bench.options import Options
from omniroute_admin.bench.results import Result
from omniroute_admin.bench.stage import Stage


class Measure(msgspec.Struct, frozen=True):
    """One measure: it yields a row or several."""

    run: Callable[[Stage], Iterator[Result]]
    is_asked_for: bool = True
    """False: it runs only where it is named, or where bad clients are wanted."""

    @property
    def what(self) -> str:
        """Return what it measures, in a sentence."""
        return (self.run.__doc__ or "").splitlines()[0]


MEASURES: dict[str, Measure] = {
    "client": Measure(pools.measure_client),
    "get": Measure(pools.measure_get),
    "unchanged": Measure(pools.measure_unchanged),
    "post": Measure(pools.measure_post),
    "get-revised": Measure(pools.measure_get_revised),
    "page": Measure(pages.measure_page),
    "poll": Measure(pages.measure_poll),
    "core": Measure(core.measure_core),
    "growth": Measure(core.measure_growth),
    "pages-open": Measure(together.measure_pages_open),
    "arriving": Measure(together.measure_arriving),
    "two-processes": Measure(together.measure_two_processes),
    "readings": Measure(telemetry.measure_readings),
    "usage": Measure(telemetry.measure_usage),
    "scale": Measure(scale.measure_scale),
    "abuse": Measure(abused.measure_abuse, is_asked_for=False),
}


def chosen(options: Options) -> dict[str, Measure]:
    """Return the measures that a run has."""
    if options.only:
        return {name: measure for name, measure in MEASURES.items() if name in options.only}
    return {name: measure for name, measure in MEASURES.items() if measure.is_asked_for or options.with_abuse}
