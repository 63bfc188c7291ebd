"""Checks of what the machine gives: folders, room, collected files."""

import json
import shutil
import tempfile
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders

from omniroute_admin.doctor.report import Check, Needs, Said, error, not_applicable, ok, some, warning

MEGABYTE = 1024 * 1024
LITTLE_ROOM = 1024 * MEGABYTE
NO_ROOM = 100 * MEGABYTE


def check_var_dir(now: datetime) -> Said:
    """Look whether VAR_DIR can be written."""
    folder = Path(settings.VAR_DIR)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ok(f"{folder} can be written.")
    except OSError as problem:
        return error(
            f"VAR_DIR, {folder}, cannot be written ({problem.strerror}).",
            "Make the folder and give it to the user who runs this, or set VAR_DIR to another.",
        )


def kept_folders() -> list[Path]:
    """Return the folders of this machine in which data grows."""
    database = settings.DATABASES["default"]
    folders = [Path(database["NAME"]).parent] if database["ENGINE"].endswith("sqlite3") else []
    return [*folders, *([Path(settings.VAR_DIR)] if settings.CELERY_BROKER_URL.startswith("filesystem:") else [])]


def check_room(now: datetime) -> Said:
    """Look how much room is left where data grows."""
    free = {folder: shutil.disk_usage(folder).free for folder in kept_folders() if folder.is_dir()}
    if not free:
        return not_applicable("Nothing grows on this machine: database and broker are servers.")
    folder = min(free, key=lambda one: free[one])
    says = f"{free[folder] // MEGABYTE} MB are free where {folder} lies."
    mend = "Free some room or move VAR_DIR: a full disk refuses every write, and the database keeps what it has."
    if free[folder] >= LITTLE_ROOM:
        return ok(says)
    return (error if free[folder] < NO_ROOM else warning)(says, mend)


def check_static(now: datetime) -> Said:
    """Look whether the static files of this version are collected."""
    if "Manifest" not in settings.STORAGES["staticfiles"]["BACKEND"]:
        return not_applicable("Static files are served from their sources.")
    mend = "Run: python manage.py collectstatic --noinput, and restart the web processes."
    try:
        collected = json.loads((Path(settings.STATIC_ROOT) / "staticfiles.json").read_text(encoding="utf-8"))["paths"]
    except (OSError, ValueError, KeyError):
        return error(f"No static files are collected in {settings.STATIC_ROOT}: every page fails.", mend)
    wanted = {name for finder in get_finders() for name, _ in finder.list([])}
    missing = sorted(wanted - set(collected))
    if missing:
        return error(f"{len(missing)} static files are not collected ({some(missing)}).", mend)
    return ok(f"{len(collected)} static files are collected.")


CHECKS = (
    Check("var_dir", Needs.NOTHING, check_var_dir),
    Check("room", Needs.NOTHING, check_room),
    Check("static_files", Needs.NOTHING, check_static),
)
