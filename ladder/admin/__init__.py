"""The admin of the ladder's rows: what telemetry owns is shown, what is the operator's goes through the services.

Django looks for this name only; each module registers its own.
"""

from ladder.admin import alerts, connections, ledger, quota, resting, settings, timeline

__all__ = ["alerts", "connections", "ledger", "quota", "resting", "settings", "timeline"]
