"""How the doctor tells what it found, and by which code it ends; it needs no settings, as they may be what is wrong."""

from collections.abc import Iterable, Iterator

import msgspec

from omniroute_admin.doctor.report import Finding, Verdict

WARNINGS, ERRORS = 1, 2
_WORDS = {Verdict.OK: "ok", Verdict.NOT_APPLICABLE: "-", Verdict.WARNING: "WARNING", Verdict.ERROR: "ERROR"}


def told(findings: list[Finding], *, as_json: bool) -> str:
    """Return the findings as lines for people, or as one JSON document for programs."""
    if not as_json:
        return "\n".join(_lines(findings))
    document = {"verdict": worst(findings), "checks": findings}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def exit_code(findings: list[Finding], *, strict: bool) -> int:
    """Return the code that the command ends with."""
    verdict = worst(findings)
    if verdict is Verdict.ERROR:
        return ERRORS
    return WARNINGS if strict and verdict is Verdict.WARNING else 0


def worst(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict of all."""
    order = list(Verdict)
    return max((finding.verdict for finding in findings), key=order.index)


def unusable_settings(problem: Exception) -> Finding:
    """Return that nothing else could be asked; the refusal of a setting tells what is wrong and the remedy apart."""
    says = getattr(problem, "says", str(problem))
    mend = getattr(problem, "mend", "Mend the settings (docs/operations.md) and ask again.")
    return Finding("settings", Verdict.ERROR, f"The settings cannot be used. {says}", mend)


def _lines(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{_WORDS[finding.verdict]:<8} {finding.check}: {finding.says}"
        if finding.mend:
            yield f"{'':<8} {finding.mend}"
    counts = {verdict: sum(finding.verdict is verdict for finding in findings) for verdict in Verdict}
    yield f"{counts[Verdict.ERROR]} errors, {counts[Verdict.WARNING]} warnings, {counts[Verdict.OK]} ok."
