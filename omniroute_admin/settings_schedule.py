"""The settings' CELERY_BEAT_SCHEDULE: which task is due when. What is late may be missed where it expires."""

from typing import Any

from celery.schedules import crontab

BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "thin_history": {"task": "ladder.tasks.thin_history", "schedule": 3600, "options": {"expires": 3600}},
    # Does nothing where there is no demo fleet.
    "demo": {"task": "ladder.tasks.move_demo_fleet", "schedule": 20, "options": {"expires": 20}},
    "flips": {"task": "ladder.tasks.note_flips", "schedule": 5, "options": {"expires": 5}},
    "samples": {"task": "ladder.tasks.sample_occupancy", "schedule": crontab(), "options": {"expires": 60}},
    "holds": {"task": "ladder.tasks.expire_holds", "schedule": 60, "options": {"expires": 60}},
    # Just after the hour, at which windows end in nearly every zone.
    "budgets": {
        "task": "ladder.tasks.close_budget_windows",
        "schedule": crontab(minute="1"),
        "options": {"expires": 3600},
    },
    "alerts": {"task": "ladder.tasks.look_for_alerts", "schedule": 15, "options": {"expires": 15}},
    "deliveries": {"task": "ladder.tasks.send_alerts", "schedule": 5, "options": {"expires": 5}},
    # At night by UTC, at minutes of their own; what prunes comes before the others.
    "pruning": {"task": "ladder.tasks.prune_kept", "schedule": crontab(minute="23", hour="2")},
    "thinning": {"task": "ladder.tasks.thin_timeline", "schedule": crontab(minute="17", hour="3")},
    "prices": {"task": "billing_catalog.tasks.sync_prices", "schedule": crontab(minute="41", hour="3")},
    "alert_log": {"task": "ladder.tasks.thin_alerts", "schedule": crontab(minute="53", hour="3")},
}


def beat_schedule(*, heartbeat_seconds: int) -> dict[str, dict[str, Any]]:
    """Return every periodic task with its schedule; the heartbeat is due every so many seconds."""
    heartbeat = {
        "task": "omniroute_admin.tasks.beat_heartbeat",
        "schedule": heartbeat_seconds,
        "options": {"expires": heartbeat_seconds},
    }
    return {"heartbeat": heartbeat, **BEAT_SCHEDULE}
