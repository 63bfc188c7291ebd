"""The settings' LOGGING: one handler, every line of it blotted, at a level and in a form that the environment names."""

from typing import Any


def logging(*, level: str, form: str) -> dict[str, Any]:
    """Return the configuration of the logs, lines of text or of JSON; nothing secret passes at any level."""
    quiet = "DEBUG" if level == "DEBUG" else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "blot": {"()": "omniroute_admin.common.blotting.Blot"},
            "undenied": {"()": "omniroute_admin.common.blotting.Undenied"},
            "untraced": {"()": "omniroute_admin.common.blotting.Untraced"},
        },
        "formatters": {"chosen": {"()": "omniroute_admin.common.logs.formatter", "form": form}},
        "handlers": {
            "console": {"class": "logging.StreamHandler", "formatter": "chosen", "filters": ["untraced", "blot"]}
        },
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.request": {"filters": ["undenied"]},
            "django.security.csrf": {"filters": ["undenied"]},
            # At DEBUG it tells of each variable that a template has not, with all that a form sent: passwords too.
            "django.template": {"level": "INFO"},
            # At DEBUG it tells secrets of a sign-in under way.
            "authlib": {"level": "WARNING"},
            # A line for each request, whatever the level of the others.
            "omniroute_admin.access": {"level": "INFO"},
            # A task that went well needs no three lines every few seconds.
            "celery.beat": {"level": quiet},
            "celery.worker.strategy": {"level": quiet},
            "celery.app.trace": {"level": quiet},
            # It remarks that the broker in files has no host name.
            "kombu.connection": {"level": "ERROR"},
        },
    }
