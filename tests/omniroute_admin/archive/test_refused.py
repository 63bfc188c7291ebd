"""An archive that is damaged, cut short, foreign or hostile changes nothing, and is refused in words."""

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from omniroute_admin.archive.manifest import NAME
from omniroute_admin.archive.read import MOST_EXPANSION
from omniroute_admin.common.models import ApiKey, Revision
from tests.omniroute_admin.archive.filling import rows_of
from tests.processes import environment, until

pytestmark = pytest.mark.django_db(transaction=True)
Parts = dict[str, bytes]
Change = Callable[[Parts, dict[str, Any]], None]
KEYS = "data/common.ApiKey.jsonl"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    from tests.router import make_router

    make_router()
    call_command("backup", str(tmp_path / "a.zip"), stderr=io.StringIO())
    return tmp_path / "a.zip"


def changed(file: Path, change: Change) -> Path:
    with zipfile.ZipFile(file) as box:
        parts = {name: box.read(name) for name in box.namelist()}
    manifest = json.loads(parts.pop(NAME))
    change(parts, manifest)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as box:
        for name, content in parts.items():
            box.writestr(name, content)
        if manifest:
            box.writestr(NAME, json.dumps(manifest))
    return file


def part(manifest: dict[str, Any], file: str = KEYS) -> dict[str, Any]:
    return next(one for one in manifest["parts"] if one["file"] == file)


def refuse(file: Path) -> str:
    before = rows_of(), Revision.objects.get().value
    with pytest.raises(CommandError) as refused:
        call_command("restore", str(file), "--replace", "--yes", stdout=io.StringIO())
    assert (rows_of(), Revision.objects.get().value) == before
    assert refused.value.returncode == 1
    return str(refused.value)


def _digest(parts: Parts, manifest: dict[str, Any]) -> None:
    """Let the manifest tell the truth of a part again, as one who forges it would."""
    import hashlib

    told = part(manifest)
    content = parts[KEYS]
    told |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "rows": content.count(b"\n")}


def a_changed_row(parts: Parts, manifest: dict[str, Any]) -> None:
    parts[KEYS] = parts[KEYS].replace(b"a router", b"A router")


def a_row_less(parts: Parts, manifest: dict[str, Any]) -> None:
    parts[KEYS] = b""


def a_wrong_count(parts: Parts, manifest: dict[str, Any]) -> None:
    part(manifest)["rows"] = 2


def a_path(parts: Parts, manifest: dict[str, Any]) -> None:
    parts["../../etc/cron.d/evil"] = b"x"


def a_path_that_is_told(parts: Parts, manifest: dict[str, Any]) -> None:
    parts["../evil"] = parts.pop(KEYS)
    part(manifest)["file"] = "../evil"


def an_unknown_table(parts: Parts, manifest: dict[str, Any]) -> None:
    told = part(manifest)
    told |= {"table": "common.Evil", "file": "data/common.Evil.jsonl"}
    parts["data/common.Evil.jsonl"] = parts.pop(KEYS)


def a_table_less(parts: Parts, manifest: dict[str, Any]) -> None:
    manifest["parts"].remove(part(manifest))
    del parts[KEYS]


def another_column(parts: Parts, manifest: dict[str, Any]) -> None:
    part(manifest)["columns"][0] = "pk"


def a_bomb(parts: Parts, manifest: dict[str, Any]) -> None:
    parts[KEYS] = b" " * 50_000_000
    _digest(parts, manifest)


def a_row_of_another_shape(parts: Parts, manifest: dict[str, Any]) -> None:
    parts[KEYS] = b'[1, "router"]\n'
    _digest(parts, manifest)


def a_row_that_is_no_list(parts: Parts, manifest: dict[str, Any]) -> None:
    parts[KEYS] = b'{"id": 1}\n'
    _digest(parts, manifest)


def a_value_of_another_type(parts: Parts, manifest: dict[str, Any]) -> None:
    row = json.loads(parts[KEYS])
    row[part(manifest)["columns"].index("created_at")] = "yesterday"
    parts[KEYS] = json.dumps(row).encode() + b"\n"
    _digest(parts, manifest)


def a_row_that_a_constraint_refuses(parts: Parts, manifest: dict[str, Any]) -> None:
    row = json.loads(parts[KEYS])
    row[part(manifest)["columns"].index("secret_hash")] = ""
    parts[KEYS] = json.dumps(row).encode() + b"\n"
    _digest(parts, manifest)


def a_number_that_no_database_holds(parts: Parts, manifest: dict[str, Any]) -> None:
    row = json.loads(parts[KEYS])
    row[part(manifest)["columns"].index("id")] = 2**63
    parts[KEYS] = json.dumps(row).encode() + b"\n"
    _digest(parts, manifest)


def nothing_where_something_must_be(parts: Parts, manifest: dict[str, Any]) -> None:
    row = json.loads(parts[KEYS])
    row[part(manifest)["columns"].index("name")] = None
    parts[KEYS] = json.dumps(row).encode() + b"\n"
    _digest(parts, manifest)


def no_manifest(parts: Parts, manifest: dict[str, Any]) -> None:
    manifest.clear()


def a_field_that_nobody_knows(parts: Parts, manifest: dict[str, Any]) -> None:
    manifest["evil"] = 1


def another_format(parts: Parts, manifest: dict[str, Any]) -> None:
    manifest["format_version"] = 2


def a_format_to_come(parts: Parts, manifest: dict[str, Any]) -> None:
    manifest |= {"format_version": 3, "packed_with": "something better", "parts": "elsewhere"}


def a_newer_version(parts: Parts, manifest: dict[str, Any]) -> None:
    manifest["migrations"].append("ladder.9999_next")


def an_older_version(parts: Parts, manifest: dict[str, Any]) -> None:
    manifest["migrations"].remove("ladder.0001_initial")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (a_changed_row, "was changed or damaged"),
        (a_row_less, "was changed or damaged"),
        (a_wrong_count, "was changed or damaged"),
        (a_path, "not those that its manifest names (../../etc/cron.d/evil)"),
        (a_path_that_is_told, "was changed or damaged"),
        (an_unknown_table, "common.Evil"),
        (a_table_less, "common.ApiKey"),
        (another_column, "common.ApiKey"),
        (a_bomb, "was changed or damaged"),
        (a_row_of_another_shape, "holds a row that is none of common.ApiKey"),
        (a_row_that_is_no_list, "holds a row that is none of common.ApiKey"),
        (a_value_of_another_type, "holds a row that is none of common.ApiKey"),
        (a_row_that_a_constraint_refuses, "The database refuses a row"),
        (a_number_that_no_database_holds, "The database refuses a row"),
        (nothing_where_something_must_be, "The database refuses a row"),
        (no_manifest, "no manifest"),
        (a_field_that_nobody_knows, "Its manifest cannot be read"),
        (another_format, "of the product"),
        (a_format_to_come, "'omniroute_admin backup' 3, this version reads 'omniroute_admin backup' 1"),
        (a_newer_version, "Install the version that made it, or a newer one."),
        (an_older_version, "Restore it with that version into a database of its own, then upgrade."),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_archive_that_was_tampered_with_changes_nothing(file: Path, change: Change, words: str) -> None:
    said = refuse(changed(file, change))
    assert words in said
    assert said.endswith("Nothing was changed.")


def test_a_bomb_is_refused_by_its_size_before_it_is_unpacked(file: Path) -> None:
    changed(file, a_bomb)
    with zipfile.ZipFile(file) as box:
        entry = box.getinfo(KEYS)
    assert entry.file_size > MOST_EXPANSION * entry.compress_size


@pytest.mark.parametrize("kept", [0, 1, 3, 10])
def test_an_archive_that_was_cut_short_changes_nothing(file: Path, kept: int) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * kept // 11])
    assert "This is no backup, or it was cut short" in refuse(file)


def test_an_archive_with_a_flipped_bit_changes_nothing(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as box:
        entry = box.getinfo("data/auth.Permission.jsonl")
    whole[entry.header_offset + 200] ^= 4
    file.write_bytes(whole)
    assert "data/auth.Permission.jsonl" in refuse(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path}/none.zip cannot be read" in refuse(tmp_path / "none.zip")


@pytest.mark.parametrize("options", [[], ["--replace"], ["--yes"]])
def test_a_database_in_use_is_replaced_only_by_who_says_so_and_means_it(file: Path, options: list[str]) -> None:
    ApiKey.objects.update(name="changed since")
    with pytest.raises(CommandError, match="--replace --yes deletes what it holds") as refused:
        call_command("restore", str(file), *options, stdout=io.StringIO())
    assert refused.value.returncode == 3
    assert ApiKey.objects.get().name == "changed since"


@pytest.mark.parametrize("option", ["--check", "--dry-run"])
def test_a_check_says_what_would_be_done_and_writes_nothing(file: Path, option: str) -> None:
    ApiKey.objects.update(name="changed since")
    before, out = Revision.objects.get().value, io.StringIO()
    call_command("restore", str(file), option, "--replace", "--yes", stdout=out)
    assert "common.ApiKey: 1 rows; the database has 1" in out.getvalue()
    assert "Every row agrees with its digest. Nothing was changed." in out.getvalue()
    assert (ApiKey.objects.get().name, Revision.objects.get().value) == ("changed since", before)


def test_a_restore_that_is_killed_in_the_middle_leaves_what_was_there(
    file: Path, tmp_path: Path, database_url: str
) -> None:
    """It stands still after some rows were written, and is killed there."""
    ApiKey.objects.update(name="changed since")
    before = rows_of()
    log = tmp_path / "written"
    log = tmp_path / "trace"
    program = (
        "import os, signal, sys\n"
        "from omniroute_admin.archive import restore\n"
        "insert = restore._insert\n"
        "def stop(model, rows):\n"
        "    insert(model, rows)\n"
        "    if model.__name__ == 'ApiKey':\n"
        "        open(sys.argv[3], 'w').close()\n"
        "        signal.pause()\n"
        "restore._insert = stop\n"
        "from django.core.management import call_command\n"
        "call_command('restore', sys.argv[1], '--replace', '--yes')\n"
    )
    setup = "import django; django.setup()\n"
    command = [sys.executable, "-c", setup + program, str(file), "-", str(log)]
    child = subprocess.Popen(command, env=environment(DATABASE_URL=database_url), stdout=subprocess.DEVNULL)
    until(lambda: log.exists() or child.poll() is not None, "rows that are written")
    assert child.poll() is None
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert rows_of() == before
    ApiKey.objects.update(name="and writing goes on")
