"""The form of one curated row: its fields as texts, what its sender saw, and why (SPEC 5, 4)."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models

from billing_catalog.core.sheets import Problem
from billing_catalog.errors import RowChanged
from billing_catalog.services.drafts import draft_of, field_problems, plain_text, plain_texts, problems_in, read_texts
from billing_catalog.services.kinds import Column, Kind
from omniroute_admin.common.core.stale import Difference
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.forms import ActForm, seen_text

OWN_REASON = "own_reason"
"""The form field of an entry's own reason; `reason` is why it is changed."""

KEEP = "keep_"
"""Prefix of the choice of a field that two people changed: `theirs`, or else mine."""


def field_name(column: str) -> str:
    """Return the name that a column's field has in a form."""
    return OWN_REASON if column == "reason" else column


def text_field(column: Column) -> forms.CharField:
    """Return the field of a column; what it may hold is told by the row itself."""
    return forms.CharField(label=column.label, required=False, help_text=column.help, widget=_widget(column))


def _widget(column: Column) -> forms.Widget:
    if column.form == "choice":
        return forms.Select(choices=[("", "choose"), *((word, word) for word in column.choices)])
    if column.form == "truth":
        return forms.Select(choices=[("false", "no"), ("true", "yes")])
    if column.form == "text":
        return forms.Textarea(attrs={"rows": 5, "dir": "auto"})
    if column.form == "date":
        return forms.DateInput(attrs={"type": "date"})
    numeric = {"inputmode": "decimal"} if column.form in {"number", "whole"} else {}
    plain = {"autocapitalize": "none", "spellcheck": "false"} if column.form in {"name", "pattern", "url"} else {}
    return forms.TextInput(attrs={"autocomplete": "off", **({"dir": "auto"} if column.form == "line" else {}),
                                  **numeric, **plain})  # fmt: skip


class TextsForm(ActForm):
    """A form whose own fields are a kind's columns; a bad one is named beside its field, all at once."""

    kind: Kind

    def __init__(self, *args: Any, kind: Kind, row: models.Model | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.row = kind, row
        self.sent: dict[str, str] = {}
        own = {field_name(column.name): text_field(column) for column in kind.columns}
        self.fields = {**own, "seen": self.fields["seen"], "reason": self.fields["reason"]}
        self._describe()

    def _describe(self) -> None:
        for name, field in self.fields.items():
            if field.help_text:
                field.widget.attrs["aria-describedby"] = f"hint-{name}"

    def clean(self) -> dict[str, Any]:
        """Bring what was sent into the row's own form, and name every field that cannot be."""
        cleaned = super().clean() or {}
        began = cleaned.get("seen", {})
        texts = {name: plain_text(str(cleaned.get(field_name(name), ""))) for name in self.kind.names}
        texts |= {name: text for name, text in began.items() if self.data.get(f"{KEEP}{name}") == "theirs"}
        values, problems = read_texts(kind=self.kind, texts=texts)
        draft = draft_of(kind=self.kind, row=self.row, values=values)
        problems += field_problems(kind=self.kind, draft=draft, but=[name for name, _ in problems])
        self.tell(problems)
        self.sent = texts if problems else plain_texts(self.kind, draft)
        return cleaned

    def tell(self, problems: Iterable[Problem]) -> None:
        """Put what is wrong beside the fields it is about."""
        for name, words in problems:
            shown = field_name(name) if name in self.kind.names else name
            self.add_error(shown if shown in self.fields else None, words)

    def refuse(self, error: ValidationError | ProductError) -> None:
        """Put what a service refused beside the fields it is about."""
        self.tell(problems_in(error=error))


class RowForm(TextsForm):
    """The form of a row that is curated, or would be."""

    @classmethod
    def opened(cls, *, kind: Kind, row: models.Model | None, given: Mapping[str, str] | None = None) -> "RowForm":
        """Return the form as it is opened: with a row's own values, or, for a new one, with those given."""
        empty = dict.fromkeys(kind.names, "")
        shown = plain_texts(kind, row) if row is not None else empty
        initial = {field_name(name): text for name, text in {**shown, **(given or {})}.items()}
        return cls(kind=kind, row=row, initial=initial | {"seen": seen_text(shown)})

    def again(self, changed: RowChanged) -> "RowForm":
        """Return the form to be sent again after another person's change: theirs where this side changed nothing."""
        theirs = {one.name: one.stored for one in changed.differences if not one.is_touched}
        data = {field_name(name): text for name, text in {**self.sent, **theirs}.items()}
        data |= {"seen": seen_text(changed.stored), "reason": self.cleaned_data.get("reason", "")}
        return RowForm(data, kind=self.kind, row=self.row)


class ActOnRowForm(ActForm):
    """A form that only asks why: to delete a row, or to mark it as reviewed."""

    @classmethod
    def opened(cls, *, kind: Kind, row: models.Model, reason: str = "") -> "ActOnRowForm":
        """Return the form as it is opened."""
        return cls(initial={"seen": seen_text(plain_texts(kind, row)), "reason": reason})


def labelled(kind: Kind, differences: Iterable[Difference]) -> list[tuple[str, Difference]]:
    """Return the differences with the labels of their fields."""
    labels = {column.name: column.label for column in kind.columns}
    return [(labels.get(one.name, one.name), one) for one in differences]
