"""Errors that services and adapters of the ladder raise on purpose."""


class OmnirouteUnreadable(Exception):  # noqa: N818 - named for what it tells
    """A file could not be read as an OmniRoute database.

    `code` is a stable word for programs, `sentence` one sentence for a human: what is wrong and
    what would mend it. Neither carries anything read out of the file's rows.
    """

    def __init__(self, *, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


class LedgerIsAppendOnly(Exception):  # noqa: N818 - named for what it tells
    """A row of the ledger was to be changed or deleted: what happened stays, a correction is a row of its own."""
