"""Checks of the settings: what is open to others that should not be."""

from datetime import datetime
from pathlib import Path

from django.conf import settings

from omniroute_admin.doctor.report import Check, Needs, Said, error, not_applicable, ok, some, warning

_OWN = frozenset({"localhost", "127.0.0.1", "[::1]"})


def public_hosts() -> list[str]:
    """Return the names under which others than this machine reach the product."""
    return sorted(set(settings.ALLOWED_HOSTS) - _OWN)


def is_open_to_others(path: Path) -> bool:
    """Tell whether any user of this machine may read a file: its own mode says so, and each folder above lets through.

    Raises:
        OSError: it is not there.
    """
    path = path.resolve()
    return bool(path.stat().st_mode & 0o004) and all(folder.stat().st_mode & 0o001 for folder in path.parents)


def check_debug(now: datetime) -> Said:
    """Look at DEBUG."""
    if not settings.DEBUG:
        return ok("DEBUG is off.")
    says = "DEBUG is on: a page that fails shows its traceback and settings to whoever asks."
    return (error if public_hosts() else warning)(says, "Set DEBUG=false and restart.")


def check_hosts(now: datetime) -> Said:
    """Look at ALLOWED_HOSTS."""
    hosts = public_hosts()
    if "*" in hosts:
        return warning("ALLOWED_HOSTS allows every name.", "Set ALLOWED_HOSTS to the names it is reached by.")
    return ok(f"Reached as {some(hosts)}." if hosts else "Reached from this machine only.")


def check_https(now: datetime) -> Said:
    """Look at SECURE_SSL."""
    hosts = public_hosts()
    if settings.SECURE_SSL:
        return ok("Cookies are sent over HTTPS only.")
    if not hosts:
        return not_applicable("SECURE_SSL is off, and only this machine reaches it.")
    return error(
        f"SECURE_SSL is off, and it is reached as {some(hosts)}: passwords and keys may be sent in the clear.",
        "End TLS in a proxy, set SECURE_SSL=true and TRUST_PROXY=true, and restart.",
    )


def check_secret_files(now: datetime) -> Said:
    """Look at who may read the files that hold secrets."""
    files = [Path(file) for file in settings.SECRET_FILES if file]
    here = [file for file in files if file.exists() and not file.is_relative_to("/run/secrets")]
    wide = [str(file) for file in here if is_open_to_others(file)]
    if wide:
        return warning(f"Every user of this machine may read {some(wide)}.", f"Run: chmod 600 {' '.join(wide)}")
    return ok("No other user of this machine may read the secret key.")


CHECKS = (
    Check("debug", Needs.NOTHING, check_debug),
    Check("hosts", Needs.NOTHING, check_hosts),
    Check("https", Needs.NOTHING, check_https),
    Check("secret_files", Needs.NOTHING, check_secret_files),
)
