"""Apprise, which brings a notice to mail, Slack and a hundred more (https://github.com/caronc/apprise, version 2.3).

Its addresses hold tokens and passwords. Nothing that it logs or raises goes any further, but for the three digits of an
HTTP status.
"""

import logging
import re
import threading
from functools import lru_cache
from typing import Any

from ladder.adapters.deadline import OutOfTime, within
from ladder.adapters.quiet_logs import APPRISE, quieten
from ladder.core.alerts.channels import Outcome, outcome_of_status

ALL_SECONDS = 30
_STATUS = re.compile(r"\berror=([1-5][0-9]{2})\b")
_FAILED = "could not be delivered; the service was not reached or refused it"
_FIRST_BAD = 300

quieten()


def is_readable(address: str) -> bool:
    """Tell whether Apprise knows the service that an address names, and finds all in it that the service needs."""
    return _service(address) is not None


def send(*, address: str, title: str, text: str, is_good: bool) -> Outcome:
    """Send a notice once; `is_good` says that something is over (services show that in their own way)."""
    service = _service(address)
    if service is None:
        return Outcome("its address cannot be read", is_permanent=True)
    statuses: list[int] = []
    try:
        is_sent = within(ALL_SECONDS, lambda: _notify(service, title, text, is_good, statuses))
    except OutOfTime:
        return Outcome(f"did not answer within {ALL_SECONDS} s")
    except Exception:  # noqa: BLE001 - its words may hold the address, so that none of them go further
        return Outcome(_FAILED)
    if is_sent:
        return Outcome()
    return outcome_of_status(statuses[-1]) if statuses and statuses[-1] >= _FIRST_BAD else Outcome(_FAILED)


def _notify(service: Any, title: str, text: str, is_good: bool, statuses: list[int]) -> bool:
    import apprise

    kind = apprise.NotifyType.SUCCESS if is_good else apprise.NotifyType.WARNING
    listener = _Listener(statuses)
    logger = logging.getLogger(APPRISE)
    logger.addHandler(listener)
    try:
        return bool(service.notify(title=title, body=text, notify_type=kind, body_format=apprise.NotifyFormat.TEXT))
    finally:
        logger.removeHandler(listener)


class _Listener(logging.Handler):
    """Notes the HTTP status in what Apprise warns of in this thread, and nothing else."""

    def __init__(self, statuses: list[int]) -> None:
        super().__init__(logging.WARNING)
        self._statuses = statuses
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Note the status."""
        found = _STATUS.search(record.getMessage())
        if found and record.thread == self._thread:
            self._statuses.append(int(found[1]))


def _service(address: str) -> Any | None:
    import apprise

    return apprise.Apprise.instantiate(address, asset=_asset(), suppress_exceptions=True)


@lru_cache(maxsize=1)
def _asset() -> Any:
    """Return how Apprise is to behave: it keeps nothing on disk, loads no code but its own, and reads no templates."""
    import apprise

    return apprise.AppriseAsset(
        app_id="omniroute_admin",
        app_desc="Subscription first",
        app_url="",
        secure_logging=True,
        storage_mode=apprise.PersistentStoreMode.MEMORY,
        plugin_paths=[],
        allow_templates=False,
    )
