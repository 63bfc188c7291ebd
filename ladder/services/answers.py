"""What every telemetry call answers (SPEC 4): four disjoint counts, one bad item never costs the good ones."""

import msgspec


class Rejected(msgspec.Struct, frozen=True):
    """One item that was refused: its place in the body, a stable word, a sentence for a human."""

    index: int
    code: str
    detail: str


class TelemetryAnswer(msgspec.Struct, frozen=True):
    """How many items had an effect, had it already, went to history only, or were refused."""

    accepted: int
    duplicates: int
    superseded: int
    rejected: tuple[Rejected, ...] = ()
