"""What a process decides at an instant; run as a program, it answers for each instant on its standard input."""

import sys
from datetime import datetime

import msgspec


def verdicts(now: datetime) -> str:
    """Return the pools over the stored inventory with every reason, as this process answers at `now`, in one line."""
    # Imported here, since as a program it has to set Django up first.
    from ladder.core.ids import FLAT_IDS
    from ladder.core.pool import build_pool
    from ladder.core.values import PoolOptions
    from ladder.selectors.state import get_snapshot

    snapshot, options = get_snapshot(now=now), PoolOptions(explain=True)
    pools = [build_pool(snapshot=snapshot, pool_id=one, candidates=None, options=options, now=now) for one in FLAT_IDS]
    return msgspec.json.encode(pools).decode()


def main() -> None:
    import django

    django.setup()
    for line in sys.stdin:
        print(verdicts(datetime.fromisoformat(line.strip())), flush=True)


if __name__ == "__main__":
    main()
