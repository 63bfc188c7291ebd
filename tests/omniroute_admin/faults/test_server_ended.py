"""SPEC 6: a server that is told to end answers what it has taken, and loses nothing it acknowledged."""

import pytest

from tests.omniroute_admin.faults.installation import Installation
from tests.omniroute_admin.faults.load import CUT, bad, check_nothing_is_lost, under_load

pytestmark = pytest.mark.slow


def test_a_server_told_to_end_under_load(on_sqlite: Installation) -> None:
    on_sqlite.start("web")
    with under_load(on_sqlite) as load:
        for _ in range(3):
            on_sqlite.programs["web"].end()
            on_sqlite.start("web")
            there = load.is_answered(times=5)
            assert bad(load.between(there)) == []
    # Who was not answered was cut off, or found nobody: no call ended with half an answer, or a failure.
    assert {status for _, status, _, _ in bad(load.told)} == {CUT}
    check_nothing_is_lost(on_sqlite, load)
