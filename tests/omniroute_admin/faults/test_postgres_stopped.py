"""SPEC 4, 6: without its database the product decides nothing; with it again all is right, and nothing is lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.omniroute_admin.faults.installation import PROGRAMS, Installation, instant
from tests.omniroute_admin.faults.load import (
    PAGES,
    Load,
    bad,
    check_nothing_is_lost,
    refusals,
    under_load,
)
from tests.postgres import Cluster, NoPostgresError, own_cluster

pytestmark = pytest.mark.slow
OUT_OF_REACH = (503, "state_unavailable")
OUT_OF_REACH_PAGE = (503, "")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    try:
        with own_cluster() as cluster:
            yield cluster
    except NoPostgresError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def installed(cluster: Cluster, tmp_path: Path) -> Iterator[Installation]:
    installed = Installation(tmp_path, cluster.url)
    try:
        installed.prepare()
        installed.start(*PROGRAMS)
        yield installed
    finally:
        installed.end()


class Outage(NamedTuple):
    """When the database began to go, was gone, was still gone, and was there again."""

    going: float
    gone: float
    still: float
    there: float


def outage(load: Load, cluster: Cluster) -> Outage:
    """Stop the database as a crash would, let every kind of call be answered without it, and start it again."""
    going = instant()
    cluster.stop()
    gone = load.is_answered()
    still = instant()
    cluster.start()
    return Outage(going, gone, still, instant())


def test_postgresql_stopped_and_started_under_load(installed: Installation, cluster: Cluster) -> None:
    with under_load(installed) as load:
        installed.beats()
        outages = []
        for _ in range(2):
            outages.append(outage(load, cluster))
            load.is_answered(times=5)
            installed.beats()
            installed.looks()
        over = instant()

    for one, until_next in zip(outages, [outages[1].going, over], strict=True):
        # Nothing is decided from memory, nothing fails otherwise, nothing hangs.
        without = load.between(one.gone, one.still)
        assert {(call.status, call.code) for call in without} == {OUT_OF_REACH, OUT_OF_REACH_PAGE}
        assert {call.kind for call in without if b"The database cannot be reached</h1>" in call.body} == PAGES
        assert {call.kind for call in without if call.code} == {kind.name for kind in load.kinds} - PAGES
        # And nobody who asks once it is there again notices anything.
        assert bad(load.between(one.there, until_next)) == []
    assert refusals(load.told) == {OUT_OF_REACH, OUT_OF_REACH_PAGE}
    assert installed.kept_running()
    check_nothing_is_lost(installed, load)


def test_postgresql_restarted_in_the_midst_of_calls(installed: Installation, cluster: Cluster) -> None:
    """Connections that were dropped are noticed before they are used: who asks once it is back notices nothing."""
    with under_load(installed) as load:
        for _ in range(3):
            cluster.restart()
            there = instant()
            load.is_answered()
            # Those that were under way while it went are left out: a span of their own, told below.
            assert bad(load.between(there)) == []
        installed.beats()
    assert refusals(load.told) <= {OUT_OF_REACH, OUT_OF_REACH_PAGE}
    assert installed.kept_running()
    check_nothing_is_lost(installed, load)
