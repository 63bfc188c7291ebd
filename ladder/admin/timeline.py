"""The admin of the timeline: history itself, so it is only looked at."""

from django.contrib import admin

from ladder.core.values import PAID_RUNGS
from ladder.models import RungFlip, RungSample
from omniroute_admin.common.admin_base import OnlyRead

_PAID = {rung.word for rung in PAID_RUNGS}


@admin.register(RungFlip)
class RungFlipAdmin(OnlyRead):
    """Flips: what changed on the ladder, when and why."""

    reads = "pools:read"
    list_display = ["at", "what", "rung", "from_in_words", "to_in_words", "code", "cause", "revision"]
    list_filter = ["kind", "cause", "rung", "to_state", "at", "connection__provider"]
    list_select_related = ["connection"]
    search_fields = ["connection__connection_id", "connection__provider", "connection__label", "code"]

    @admin.display(description="what", ordering="connection")
    def what(self, flip: RungFlip) -> str:
        """Return what flipped: a connection, or the rung itself."""
        return "the rung" if flip.connection is None else str(flip.connection)

    @admin.display(description="from", ordering="from_state")
    def from_in_words(self, flip: RungFlip) -> str:
        """Return the state before."""
        return flip.from_state or "not there"

    @admin.display(description="to", ordering="to_state")
    def to_in_words(self, flip: RungFlip) -> str:
        """Return the state after."""
        return flip.to_state or "not there"


@admin.register(RungSample)
class RungSampleAdmin(OnlyRead):
    """Samples: how each rung stood, minute by minute."""

    reads = "pools:read"
    list_display = ["at", "rung", "is_serving", "usable", "total", "left_in_words"]
    list_filter = ["rung", "is_serving", "at"]

    @admin.display(description="left", ordering="left_usd")
    def left_in_words(self, sample: RungSample) -> str:
        """Return what was left of the budget."""
        if sample.left_usd is None:
            return "no limit" if sample.rung in _PAID else "no budget is asked"
        return f"${sample.left_usd.normalize():f}"
