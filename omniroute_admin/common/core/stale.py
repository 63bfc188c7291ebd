"""Two people at one form: what another saved since it was opened, and what of one's own stands against it (SPEC 5)."""

from collections.abc import Mapping

import msgspec


class Difference(msgspec.Struct, frozen=True):
    """One field that another changed meanwhile: as it was when the form was opened, as it is stored, as it was sent."""

    name: str
    began: str
    stored: str
    sent: str

    @property
    def is_touched(self) -> bool:
        """Tell whether this side changed it too."""
        return self.sent != self.began

    @property
    def is_same(self) -> bool:
        """Tell whether both came to the same."""
        return self.sent == self.stored


def find_differences(
    *, began: Mapping[str, str], stored: Mapping[str, str], sent: Mapping[str, str]
) -> list[Difference]:
    """Return the fields that another changed since the form was opened; of the same names, values as text."""
    return [
        Difference(name=name, began=was, stored=stored[name], sent=sent.get(name, was))
        for name, was in began.items()
        if name in stored and stored[name] != was
    ]


def find_changes(*, began: Mapping[str, str], sent: Mapping[str, str]) -> dict[str, str]:
    """Return what the sender changed: nothing else of a form is meant."""
    return {name: value for name, value in sent.items() if began.get(name) != value}
