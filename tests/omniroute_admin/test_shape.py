"""The shape of the project: pure cores, pinned requirements."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.shared import ROOT

# Each core with the lower cores it may stand on.
CORES = {
    "omniroute_admin.common.core": [],
    "billing_catalog.core": ["omniroute_admin.common.core"],
    "ladder.core": ["billing_catalog.core", "omniroute_admin.common.core"],
}
# Of the standard library: what has a clock, chance, files, processes or a network in it.
IMPURE = {
    "asyncio", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "shutil", "socket",
    "sqlite3", "subprocess", "tempfile", "threading", "time", "urllib",
}  # fmt: skip


def imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("core", CORES)
def test_a_core_imports_only_pure_library_and_lower_cores(core: str) -> None:
    allowed = (core, *CORES[core])
    pure = (sys.stdlib_module_names | {"msgspec"}) - IMPURE
    files = list((ROOT / core.replace(".", "/")).rglob("*.py"))
    assert files
    bad = {
        (file.name, name)
        for file in files
        for name in imported(file)
        if name.partition(".")[0] not in pure and not any(f"{name}.".startswith(f"{root}.") for root in allowed)
    }
    assert bad == set()


@pytest.mark.parametrize("core", CORES)
def test_a_core_reads_no_clock(core: str) -> None:
    for file in (ROOT / core.replace(".", "/")).rglob("*.py"):
        calls = (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
        called = {function.attr for function in calls if isinstance(function, ast.Attribute)}
        assert called.isdisjoint({"now", "utcnow", "today"}), file


def test_every_requirement_is_pinned_and_has_a_reason() -> None:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in wanted if not re.fullmatch(r"[\w\-]+(\[[\w,]+\])?==[\w.]+ +# \w.{4,}", line)] == []
