"""The form of the web server's own lines, which it writes before there is a Django: `granian_log.json` names this."""

import logging

from omniroute_admin import settings
from omniroute_admin.common.logs import formatter

_LINE = "[{levelname}] {message}"


def server_formatter() -> logging.Formatter:
    """Return the formatter that LOG_FORMAT chooses."""
    return formatter(form=settings.LOG_FORMAT, line=_LINE)
