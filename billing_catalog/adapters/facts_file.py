"""Read a file of curated facts (billing_catalog/data/facts.json is the shipped one)."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import msgspec

from billing_catalog.core.values import Billing, Overage
from billing_catalog.errors import CatalogFileError
from omniroute_admin.common.core.names import PROVIDER_PATTERN

SHIPPED = Path(__file__).resolve().parent.parent / "data" / "facts.json"

Name = Annotated[str, msgspec.Meta(pattern=PROVIDER_PATTERN)]


class EntryFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a provider bills one auth type, or every one where `auth_type` is None."""

    provider: Name
    billing: Billing
    overage: Overage
    reason: str
    auth_type: str | None = None
    source_url: str = ""


class FreeFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A provider whose models cost nothing."""

    provider: Name
    reason: str


class SourceFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which lists serve a provider; `reason` is for the reader of the file."""

    provider: Name
    price_list: str
    capability_list: str
    sells_seats: bool
    reason: str


class ThresholdsFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Input price in USD per million tokens up to which a model is free, and cheap."""

    free: Decimal
    cheap: Decimal


class FactsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file; the review date and the reviewer hold for every entry."""

    about: str
    as_of: str
    reviewed_on: date
    reviewed_by: str
    billing_entries: tuple[EntryFact, ...]
    free_providers: tuple[FreeFact, ...]
    tier_thresholds: ThresholdsFact
    price_sources: tuple[SourceFact, ...]


def read_facts(*, path: Path = SHIPPED) -> FactsFile:
    """Return the facts of a file.

    Raises:
        CatalogFileError: it cannot be read, is no JSON, or has another form; says where.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=FactsFile)
    except OSError as error:
        raise CatalogFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CatalogFileError(f"{path} is no file of facts: {error}.") from error
