"""The acts on one connection: the form of each, what it is held against, and what it does (SPEC 5, 2)."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ladder.forms.connections import (
    ClearCooldownForm,
    ConnectionAct,
    CutoffForm,
    DeleteForm,
    EditForm,
    MarkExhaustedForm,
    MuteForm,
    OverrideForm,
    PauseForm,
    UnmuteForm,
)
from ladder.models import Connection
from ladder.selectors.form_values import (
    LastChange,
    connection_values,
    cooldown_values,
    cutoff_values,
    last_change_of_connection,
    last_change_of_cooldown,
    last_change_of_window,
    muted_values,
    status_values,
)
from ladder.services.connection_acts import (
    ActOutcome,
    change_connection,
    clear_seen_cooldowns,
    mark_window_exhausted,
    mute_window,
    remove_connection,
    set_window_cutoff,
)
from omniroute_admin.common.history import Actor

Values = Mapping[str, str]
ENABLED, OVERRIDE, EDITED = ("is_enabled",), ("overage_override",), ("label", "auth_type", "excluded_models")


class Run(msgspec.Struct, frozen=True):
    """One act that was sent: on whom, with what, by whom and when. `kept` are values the sender leaves to another."""

    row: Connection
    form: ConnectionAct
    actor: Actor
    now: datetime
    kept: frozenset[str] = frozenset()

    @property
    def began(self) -> Values:
        """Return what was seen."""
        seen: Values = self.form.cleaned_data["seen"]
        return seen

    @property
    def reason(self) -> str:
        """Return why."""
        return str(self.form.cleaned_data["reason"]).strip()

    @property
    def told(self) -> dict[str, Any]:
        """Return what every service wants to know."""
        return {
            "connection": self.row,
            "began": self.began,
            "actor": self.actor,
            "reason": self.reason,
            "now": self.now,
        }


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """One act: its words, its form, the values it is held against, and what it does.

    `button` names it in the list and on its button, `done` tells that it was done (`{name}`, and `{window}` where the
    form has one), `label` names a value in a conflict.
    """

    key: str
    button: str
    hint: str
    done: str
    form: type[ConnectionAct]
    seen: Callable[[Connection], Values]
    run: Callable[[Run], ActOutcome]
    last_change: Callable[[Connection, str], LastChange | None]
    label: Callable[[str], str] = str
    is_bad: bool = False
    fills: tuple[str, ...] = ()
    """Which of the values seen the form shows in fields of the same names."""


def _fields(*names: str) -> Callable[[Connection], Values]:
    return lambda row: {name: value for name, value in connection_values(row).items() if name in names}


def _change(run: Run, sent: Values) -> ActOutcome:
    wanted = {name: value for name, value in sent.items() if name not in run.kept}
    return change_connection(sent=wanted, **run.told)


def _edit(run: Run) -> ActOutcome:
    return _change(run, {name: run.form.cleaned_data[name] for name in EDITED if name in run.form.cleaned_data})


def _override(run: Run) -> ActOutcome:
    return _change(run, {"overage_override": run.form.cleaned_data["overage_override"]})


def _clear(run: Run) -> ActOutcome:
    form = run.form
    chosen = form.chosen() if isinstance(form, ClearCooldownForm) else []
    return clear_seen_cooldowns(chosen=[key for key in chosen if key not in run.kept], **run.told)


def _mark(run: Run) -> ActOutcome:
    values = run.form.cleaned_data
    return mark_window_exhausted(window=values["window"], reset_at=values["reset_at"], **run.told)


def _mute(run: Run) -> ActOutcome:
    return mute_window(window=run.form.cleaned_data["window"], is_muted=True, **run.told)


def _unmute(run: Run) -> ActOutcome:
    return mute_window(window=run.form.cleaned_data["window"], is_muted=False, **run.told)


def _cutoff(run: Run) -> ActOutcome:
    cutoff = run.form.cutoff() if isinstance(run.form, CutoffForm) else ""
    return set_window_cutoff(window=run.form.cleaned_data["window"], cutoff=cutoff, **run.told)


def _unless_kept(act: Callable[[Run], ActOutcome]) -> Callable[[Run], ActOutcome]:
    """Return an act on one window that does nothing where the sender leaves it as another saved it."""
    return lambda run: ActOutcome() if run.form.cleaned_data["window"] in run.kept else act(run)


def _delete(run: Run) -> ActOutcome:
    return remove_connection(connection=run.row, actor=run.actor, reason=run.reason, now=run.now)


def _of_connection(row: Connection, _: str) -> LastChange | None:
    return last_change_of_connection(row)


def _of_window(row: Connection, name: str) -> LastChange | None:
    return last_change_of_window(row, window=name)


def _of_cooldown(_: Connection, key: str) -> LastChange | None:
    return last_change_of_cooldown(key)


_LABELS = {
    "is_enabled": "Enabled",
    "overage_override": "Overage override",
    "label": "Label",
    "auth_type": "Auth type",
    "excluded_models": "Excluded models",
}


def _field_label(name: str) -> str:
    return _LABELS[name]


def _cooldown_label(_: str) -> str:
    return "Cooldown"


ACTS: dict[str, Act] = {
    act.key: act
    for act in (
        Act(
            key="clear-cooldown",
            button="Clear cooldown",
            hint="The connection may serve as soon as nothing else keeps it out.",
            done="The cooldown of {name} is cleared.",
            form=ClearCooldownForm,
            seen=cooldown_values,
            run=_clear,
            last_change=_of_cooldown,
            label=_cooldown_label,
        ),
        Act(
            key="mark-exhausted",
            button="Mark exhausted",
            hint="Out until a newer reading says otherwise, or the reset.",
            done="{name} is marked exhausted.",
            form=MarkExhaustedForm,
            seen=status_values,
            run=_unless_kept(_mark),
            last_change=_of_window,
        ),
        Act(
            key="cutoff",
            button="Set a cutoff",
            hint="For one window of this connection, in place of the exit cutoff.",
            done="The cutoff of {name} {window} is saved.",
            form=CutoffForm,
            seen=cutoff_values,
            run=_unless_kept(_cutoff),
            last_change=_of_window,
        ),
        Act(
            key="mute",
            button="Mute a window",
            hint="A muted window does not count.",
            done="The window {window} of {name} is muted.",
            form=MuteForm,
            seen=muted_values,
            run=_unless_kept(_mute),
            last_change=_of_window,
        ),
        Act(
            key="unmute",
            button="Let a window count again",
            hint="It counts from now on, by its newest reading.",
            done="The window {window} of {name} counts again.",
            form=UnmuteForm,
            seen=muted_values,
            run=_unless_kept(_unmute),
            last_change=_of_window,
        ),
        Act(
            key="pause",
            button="Pause",
            hint="Out of every pool until someone resumes it.",
            done="{name} is paused.",
            form=PauseForm,
            seen=_fields(*ENABLED),
            run=lambda run: _change(run, {"is_enabled": "no"}),
            last_change=_of_connection,
            label=_field_label,
            is_bad=True,
        ),
        Act(
            key="resume",
            button="Resume",
            hint="Back to where its quota, its cooldowns and the catalogue put it.",
            done="{name} is resumed.",
            form=PauseForm,
            seen=_fields(*ENABLED),
            run=lambda run: _change(run, {"is_enabled": "yes"}),
            last_change=_of_connection,
            label=_field_label,
        ),
        Act(
            key="override",
            button="Override overage",
            hint="For an account whose owner switched pay-as-you-go past the plan on, or off. Declaring hard-stop where"
            " the catalogue does not needs a written reason: what you write below is kept as that.",
            done="The overage override of {name} is saved.",
            form=OverrideForm,
            seen=_fields(*OVERRIDE),
            run=_override,
            fills=OVERRIDE,
            last_change=_of_connection,
            label=_field_label,
        ),
        Act(
            key="edit",
            button="Edit",
            hint="Its label, its auth type, and the models that it must not serve.",
            done="{name} is saved.",
            form=EditForm,
            seen=_fields(*EDITED),
            run=_edit,
            fills=EDITED,
            last_change=_of_connection,
            label=_field_label,
        ),
        Act(
            key="delete",
            button="Delete",
            hint="Out of routing for good. Its history and what it spent stay in the books.",
            done="{name} is deleted.",
            form=DeleteForm,
            seen=_fields(*ENABLED),
            run=_delete,
            last_change=_of_connection,
            label=_field_label,
            is_bad=True,
        ),
    )
}
"""Every act by the last part of its address, in the order in which the page lists them."""
