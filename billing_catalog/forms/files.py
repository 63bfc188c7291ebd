"""The forms of an import: a file, and then the confirmation of just the difference that was shown."""

from typing import Any

from django import forms
from django.core import signing
from django.core.files.uploadedfile import UploadedFile

from billing_catalog.core.sheets import Sheet, read_csv, read_json
from billing_catalog.services.kinds import FILES, OFFERED, PRICES
from omniroute_admin.common.forms import ReasonField

LARGEST_FILE = 2 * 1024 * 1024
MOST_ROWS = {True: 5_000, False: 1_000}
"""Most rows of one file, of prices and of all else: the latter are written one by one, and the database waits."""
CSV, JSON = "csv", "json"
_SALT = "catalogue import"
_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32"}


def read_sheets(*, form: str, kind: str, text: str) -> list[Sheet]:
    """Return the rows of a file's text; too many of them are refused like any other fault of the file."""
    columns = {name: one.sheet for name, one in FILES.items()}
    sheets = [read_csv(text=text, kind=kind, columns=columns[kind])] if form == CSV else read_json(
        text=text, columns=columns)  # fmt: skip
    return _too_many(sheets) or sheets


def _too_many(sheets: list[Sheet]) -> list[Sheet]:
    problems = []
    for is_price, most in MOST_ROWS.items():
        count = sum(len(sheet.rows) for sheet in sheets if (sheet.kind == PRICES.file) is is_price)
        if count > most:
            what = "prices" if is_price else "rows other than prices"
            problems.append(f"The file has {count:,} {what}; at most {most:,} are read at once.")
    return [Sheet("", problems=tuple(problems))] if problems else []


class UploadForm(forms.Form):
    """A file to look at; nothing is written by it."""

    file = forms.FileField(label="File", help_text="CSV or JSON in UTF-8: at most 2 MB, 5,000 prices, 1,000 others.",
                           error_messages={"required": "Choose a file.", "empty": "The file is empty."})  # fmt: skip
    kind = forms.ChoiceField(
        label="Holds",
        required=False,
        choices=[(kind.file, kind.many) for kind in OFFERED],
        help_text="Of a CSV file; a JSON file says it itself.",
    )

    def clean_file(self) -> UploadedFile:
        """Refuse what is too large, and names that are neither form."""
        file: UploadedFile = self.cleaned_data["file"]
        if (file.size or 0) > LARGEST_FILE:
            raise forms.ValidationError(f"The file has {(file.size or 0) / 1024 / 1024:.1f} MB; at most 2 MB are read.")
        if not (file.name or "").lower().endswith((f".{CSV}", f".{JSON}")):
            raise forms.ValidationError("Choose a file whose name ends in .csv or .json.")
        return file

    def clean(self) -> dict[str, Any]:
        """Read the text."""
        cleaned = super().clean() or {}
        if file := cleaned.get("file"):
            cleaned["form"] = JSON if file.name.lower().endswith(f".{JSON}") else CSV
            if cleaned["form"] == CSV and not cleaned.get("kind"):
                self.add_error("kind", "Say what the rows of this CSV file are.")
            try:
                cleaned["text"] = _decoded(file.read())
            except forms.ValidationError as error:
                self.add_error("file", error)
        return cleaned


def _decoded(content: bytes) -> str:
    for bom, name in _BOMS.items():
        if content.startswith(bom):
            raise forms.ValidationError(f"The file is written in {name}. Save it as UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise forms.ValidationError(f"Line {line} is not UTF-8. Save the file as UTF-8.") from None
    if "\x00" in text:
        raise forms.ValidationError("The file holds zero bytes: it is no text.")
    if not text.strip():
        raise forms.ValidationError("The file is empty.")
    return text


def packed(*, form: str, kind: str, text: str, digest: str) -> str:
    """Return a file and the mark of the difference that was shown, signed, for the form that confirms it."""
    return signing.dumps({"form": form, "kind": kind, "text": text, "digest": digest}, salt=_SALT, compress=True)


class ConfirmForm(forms.Form):
    """Confirms an import as it was shown."""

    packed = forms.CharField(widget=forms.HiddenInput)
    reason = ReasonField()

    def clean_packed(self) -> dict[str, str]:
        """Return the file and the mark.

        Raises:
            ValidationError: it was not us who wrote it.
        """
        try:
            found: dict[str, str] = signing.loads(self.cleaned_data["packed"], salt=_SALT)
        except signing.BadSignature:
            raise forms.ValidationError("This form is not whole any more. Choose the file again.") from None
        return found


class UndoForm(forms.Form):
    """Confirms that an import is taken back as it was shown."""

    digest = forms.CharField(widget=forms.HiddenInput)
    reason = ReasonField()
