"""What a connection is called in a sentence: its operator's word for it, else its id, a long one shortened (SPEC 5)."""

from collections.abc import Mapping

from omniroute_admin.common.core.screen import Segment

Labels = Mapping[tuple[str, str], str]
"""What operators call connections, by provider and id."""

_LONGEST_ID = 24
_LONGEST_LABEL = 40
_KEPT = 8


def own_labels(labels: Labels) -> dict[tuple[str, str], str]:
    """Return the labels that say more than the id: an import, which reads no name, repeats a piece of it."""
    return {key: label for key, label in labels.items() if not _repeats_id(label, connection_id=key[1])}


def _repeats_id(label: str, *, connection_id: str) -> bool:
    words = label.split()
    head, cut, tail = words[-1].partition("…") if words else ("", "", "")
    is_piece = bool(cut) and connection_id.startswith(head) and connection_id.endswith(tail)
    return len(words) in {1, 2} and (words[-1] == connection_id or is_piece)


def name_segment(*, provider: str, connection_id: str, labels: Labels) -> Segment:
    """Return the name of a connection as a piece of a sentence; the whole id is kept beside a shortened one."""
    label = labels.get((provider, connection_id))
    if label:
        return Segment(text=_cut(label, longest=_LONGEST_LABEL), kind="label", whole=f"{provider}/{connection_id}")
    if len(connection_id) <= _LONGEST_ID:
        return Segment(text=connection_id)
    return Segment(text=f"{connection_id[:_KEPT]}…", kind="short", whole=connection_id)


def _cut(text: str, *, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
