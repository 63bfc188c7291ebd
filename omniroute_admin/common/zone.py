"""The zone that people read times in; everything else is UTC (SPEC 1)."""

from zoneinfo import ZoneInfo

from django.conf import settings


def display_zone() -> ZoneInfo:
    """Return the zone that screens tell times in."""
    return ZoneInfo(str(settings.TIME_ZONE_DISPLAY))
