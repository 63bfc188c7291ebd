"""What no log may hold: keys, wherever they stand.

Django writes addresses into its log, and somebody may have put a key into one.
"""

import logging

from omniroute_admin.common.core.keys import blotted

_plain_formatter = logging.Formatter()


class Blot(logging.Filter):
    """Takes keys out of a record: of its message, of its values, of its traceback. Stands on every handler."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, without keys."""
        message = record.getMessage()
        if "orl_" in message:
            record.msg, record.args = blotted(message), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _plain_formatter.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = blotted(record.exc_text)
        return True


class Undenied(logging.Filter):
    """Leaves out Django's own lines of denials: those have a line of their own, and as many as there may be."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is of something else."""
        return getattr(record, "status_code", None) not in {401, 403, 429}


class Untraced(logging.Filter):
    """Leaves the traceback out of what strangers bring about as they like: a wrong host name, too many fields."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass; those of refused requests as one line."""
        if record.name.startswith("django.security."):
            record.exc_info = record.exc_text = None
        return True
