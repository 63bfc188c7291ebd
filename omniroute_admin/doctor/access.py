"""Checks of who can get in: administrators and keys; and of what no program can see."""

from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from omniroute_admin.common.core.roles import ADMINISTRATOR
from omniroute_admin.common.core.words import count_text
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.models_sign_in import SecondFactor
from omniroute_admin.common.sealing import opens
from omniroute_admin.doctor.report import Check, Needs, Said, error, not_applicable, ok, some, warning

SOON = timedelta(days=14)
LONG_UNUSED = timedelta(days=30)


def check_administrators(now: datetime) -> Said:
    """Look whether anybody can manage accounts."""
    able = Q(is_superuser=True) | Q(groups__name=ADMINISTRATOR)
    count = get_user_model()._default_manager.filter(able, is_active=True).distinct().count()
    if not count:
        return error("Nobody is an administrator.", "Run: python manage.py createsuperuser")
    return ok(f"{count_text(count, 'administrator', 'administrators')} can sign in.")


def check_second_factors(now: datetime) -> Said:
    """Look whether the second factors that are asked for can be read with the key that there is."""
    kept = SecondFactor.objects.filter(confirmed_at__isnull=False).order_by("user__username")
    boxes = list(kept.values_list("user__username", "secret_box"))
    if not boxes:
        return not_applicable("No account has a second factor.")
    closed = [name for name, box in boxes if not opens(box)]
    if closed:
        return error(
            f"{len(closed)} of {len(boxes)} second factors cannot be read with this key ({some(closed)}).",
            "Bring TOTP_KEY back, or SECRET_KEY (VAR_DIR/secret_key) where that is not set, and restart. Else recovery "
            "codes still work; for whoever has none, run: python manage.py sign_in remove-second-factor NAME",
        )
    return ok(f"{len(boxes)} second factors can be read.")


def check_keys(now: datetime) -> Said:
    """Look whether routers have keys, and which end soon."""
    live = _live_keys(now)
    if not live.exists():
        return warning("No key is valid: no router can ask.", "Make one under Keys, or: python manage.py create_key")
    ending = live.filter(expires_at__lte=now + SOON).order_by("expires_at")
    if names := [f"{key.name} ({key.prefix}…)" for key in ending]:
        return warning(f"Within {SOON.days} days these keys end: {some(names)}.", "Renew them under Keys in time.")
    return ok("No key ends within two weeks.")


def check_unused_keys(now: datetime) -> Said:
    """Look which keys nobody uses."""
    live, long_ago = list(_live_keys(now).order_by("name")), now - LONG_UNUSED
    if not live:
        return not_applicable("There is no valid key to look at.")
    unused = [key for key in live if (key.last_used_at or key.created_at) <= long_ago]
    never = sum(key.last_used_at is None for key in unused)
    if unused:
        names = some([f"{key.name} ({key.prefix}…)" for key in unused])
        counts = f"{len(unused)} of {len(live)} keys were not used for {LONG_UNUSED.days} days, {never} of them never"
        return warning(f"{counts}: {names}.", "Revoke what nobody needs under Keys.")
    return ok(f"Each of {len(live)} keys was used, or made, within {LONG_UNUSED.days} days.")


def _live_keys(now: datetime) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


def check_backups(now: datetime) -> Said:
    """Say what no program can see."""
    return not_applicable(
        "Whether there are backups is not known here.",
        "Run manage.py backup daily, keep it elsewhere, and try manage.py restore --check on it.",
    )


CHECKS = (
    Check("administrators", Needs.TABLES, check_administrators),
    Check("second_factors", Needs.TABLES, check_second_factors),
    Check("keys", Needs.TABLES, check_keys),
    Check("unused_keys", Needs.TABLES, check_unused_keys),
    Check("backups", Needs.NOTHING, check_backups),
)
