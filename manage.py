#!/usr/bin/env python
"""Django's command line for omniroute_admin."""

import os
import sys


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omniroute_admin.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if sys.argv[1:2] == ["doctor"]:
            sys.exit(_doctor_without_settings(error))
        sys.exit(f"The settings cannot be used. {error}")


def _doctor_without_settings(problem: Exception) -> int:
    """Answer as the doctor does, whose own command cannot be loaded without settings."""
    from omniroute_admin.doctor.telling import ERRORS, told, unusable_settings

    print(told([unusable_settings(problem)], as_json="--json" in sys.argv))
    return ERRORS


if __name__ == "__main__":
    main()
