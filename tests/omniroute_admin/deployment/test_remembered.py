"""What a process remembers is named in docs/scaling.md, each with what it is bound to: no other state is held."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.shared import ROOT

PAGE = (ROOT / "docs" / "scaling.md").read_text()
REMEMBERING = {"cache", "lru_cache"}
EMPTY = (ast.Dict, ast.List, ast.Set)
FILLED_LATER = {"dict", "list", "set", "deque", "OrderedDict", "defaultdict", "Counter", "WeakKeyDictionary"}
CONSTANT = {"urlpatterns", "NO_LABELS", "_NOWHERE"}
# They serve the bench's own server only.
BENCH = ROOT / "omniroute_admin" / "bench"


def _remembers(node: ast.expr | None) -> bool:
    if isinstance(node, EMPTY):
        return not (node.keys if isinstance(node, ast.Dict) else node.elts)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in FILLED_LATER
        and (not node.args)
    )


def remembered(file: Path) -> Iterator[str]:
    """Yield the names in a module that outlive a call and change: globals, containers that begin empty, caches."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and _remembers(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name) and target.id not in CONSTANT)
        if isinstance(node, ast.FunctionDef):
            names = (getattr(one, "func", one) for one in node.decorator_list)
            if any(getattr(one, "id", "") in REMEMBERING for one in names):
                yield node.name


def modules() -> list[Path]:
    found = (file for app in ("omniroute_admin", "ladder", "billing_catalog") for file in (ROOT / app).rglob("*.py"))
    return sorted(file for file in found if BENCH not in file.parents and "migrations" not in file.parts)


def test_what_is_looked_for_is_found() -> None:
    known = {"_prepared", "_remembered", "_noted", "_waiting", "shape_of", "_kept"}
    assert known <= {name for file in modules() for name in remembered(file)}


def test_what_a_process_remembers_is_named_with_what_it_is_bound_to() -> None:
    missing = [name for file in modules() for name in remembered(file) if not _is_named(file, name)]
    assert missing == [], "say in docs/scaling.md what it is and what it is bound to"


def _is_named(file: Path, name: str) -> bool:
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    return f"`{module}.{name}`" in PAGE or (module in PAGE and f"`{name}`" in PAGE)
