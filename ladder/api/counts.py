"""What became of the items that routers reported, among the metrics; counted once it is committed."""

from ladder.services.answers import TelemetryAnswer
from omniroute_admin.common.meters import ITEMS


def count_items(*, kind: str, answer: TelemetryAnswer) -> None:
    """Count the items of one call by what became of them."""
    counts = {
        "accepted": answer.accepted,
        "duplicate": answer.duplicates,
        "superseded": answer.superseded,
        "rejected": len(answer.rejected),
    }
    for outcome, number in counts.items():
        if number:
            ITEMS.add((kind, outcome), number)
