"""Who acts and when, in the tests of the catalogue."""

from datetime import UTC, datetime

from omniroute_admin.common.history import Actor

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
ACTOR = Actor(name="key orl_abcdefgh")
