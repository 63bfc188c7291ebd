"""Which acts a connection offers as it stands, and what their forms have to choose from (SPEC 5, 2)."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from ladder.forms.connections import ActFacts
from ladder.models import Connection, Cooldown, QuotaWindow
from ladder.selectors.form_values import percent_number
from ladder.views.connection_acts import ACTS
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.core.words import percent_text
from omniroute_admin.common.zone import display_zone


def act_facts(
    *,
    row: Connection,
    windows: Sequence[QuotaWindow],
    cooldowns: Sequence[Cooldown],
    exit_cutoff: Decimal,
    chosen_window: str,
    now: datetime,
) -> ActFacts:
    """Return what the forms offer."""
    glance = Glance(now=now, zone=display_zone())
    acting = [one for one in cooldowns if one.effective_until is None or one.effective_until > now]
    named = {one.window for one in windows}
    first = windows[0].window if windows else ""
    return ActFacts(
        zone=glance.zone,
        windows=tuple((one.window, one.is_muted, percent_number(one.exit_cutoff_percent)) for one in windows),
        cooldowns=tuple((str(one.pk), _cooldown_words(one, glance)) for one in acting),
        is_noauth=row.auth_type == "none",
        exit_cutoff=percent_text(exit_cutoff),
        chosen_window=chosen_window if chosen_window in named else first,
    )


def _cooldown_words(one: Cooldown, glance: Glance) -> str:
    end = f"until {glance.until(one.effective_until).clock}" if one.effective_until else "until cleared"
    return f"{one.cause}, {one.model or 'all models'}, {end}"


def offered(*, row: Connection, facts: ActFacts) -> list[str]:
    """Return the acts that change something as the connection stands."""
    is_there = {
        "clear-cooldown": bool(facts.cooldowns),
        "cutoff": bool(facts.windows),
        "mute": bool(facts.window_choices(muted=False)),
        "unmute": bool(facts.window_choices(muted=True)),
        "pause": row.is_enabled,
        "resume": not row.is_enabled,
    }
    return [key for key in ACTS if is_there.get(key, True)]
