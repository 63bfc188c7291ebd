# ruff: noqa: INP001 - a program, in no package
"""Asks a service for known vulnerabilities of everything installed beside this interpreter.

The services are the package index and the OSV database; the address of a mirror of the latter, given as the one
argument, is asked in their place.

Exit codes: 0 every package was asked for, none is known; 1 some are known; 3 the audit was not done, or not of all.
"""

import json
import subprocess
import sys
from typing import Any

SERVICES = (("pypi",), ("osv",))
FOUND, NOT_DONE = 1, 3


def main() -> int:
    """Ask the services in turn until one knows every package."""
    reasons = []
    services = [("osv", "--osv-url", sys.argv[1])] if len(sys.argv) > 1 else SERVICES
    for service, *options in services:
        told = _ask(service, options)
        if isinstance(told, str):
            reasons.append(f"{service}: {told}")
            continue
        bad = [one for one in told if one.get("vulns")]
        if bad:
            _tell(bad)
            return FOUND
        unknown = [one["name"] for one in told if one.get("skip_reason")]
        if told and not unknown:
            print(f"{len(told)} packages, asked of {service}: no known vulnerability.")
            return 0
        reasons.append(
            f"{service}: does not tell of {len(unknown)} of {len(told)} packages ({', '.join(unknown[:3])}, …)"
        )
    print("THE DEPENDENCY AUDIT WAS NOT DONE. Nobody asked whether these packages are safe:", *reasons, sep="\n  ")
    return NOT_DONE


def _ask(service: str, options: list[str]) -> list[dict[str, Any]] | str:
    """Return what a service says of each package, or why it does not."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format", "json", "--progress-spinner", "off"]
    command += ["--timeout", "10"]
    done = subprocess.run(  # noqa: S603 the command is this file's own
        [*command, "--vulnerability-service", service, *options], capture_output=True, text=True, check=False
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return (done.stderr.strip() or "no answer").splitlines()[-1]
    return found


def _tell(bad: list[dict[str, Any]]) -> None:
    for one in bad:
        for hole in one["vulns"]:
            fixed = ", ".join(hole.get("fix_versions", [])) or "none yet"
            print(f"{one['name']} {one['version']}: {hole['id']}, mended in: {fixed}")


if __name__ == "__main__":
    sys.exit(main())
