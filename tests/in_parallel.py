"""How `pytest -n` shares the tests out: file by file, everything on one database before anything on the other.

A process has one test database at a time, made by all migrations: to change between two costs seconds.
"""

from typing import Any

from xdist.scheduler import LoadScopeScheduling


class FilesOfOneDatabase(LoadScopeScheduling):
    """Gives a process all tests of a file on one database, in the order in which they were collected."""

    def __init__(self, config: Any, log: Any = None) -> None:
        # Files with many tests first would mix the databases.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        parameters = test.partition("[")[2]
        return f"{file} {next((one for one in ('sqlite', 'postgres') if parameters.startswith(one)), '')}"
