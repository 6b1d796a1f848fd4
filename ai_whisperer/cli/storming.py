"""What `whisperer storm` tells of its findings, writes of them, and keeps."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer.cli.amounts import counted
from ai_whisperer.cli.calling import Call
from ai_whisperer.core.moments import duration
from ai_whisperer.errors import StormError, WhispererError
from ai_whisperer.storm.faults import Schedule
from ai_whisperer.storm.found_file import Found, read_found, write_found
from ai_whisperer.storm.sources import team_in
from ai_whisperer.storm.storming import Finding, Report, Storm, Terms

_SHOWN_SEEDS = 5
_INDENT = " " * 8


def write_findings(storm: Storm, report: Report, folder: Path) -> dict[str, Path]:
    """By invariant, the file with its schedule."""
    written: dict[str, Path] = {}
    source = storm.source
    for finding in report.findings:
        if not finding.exact:
            continue
        name = finding.violation.invariant
        file = folder / f"storm-{source.path.stem}-{_as_name(name)}.json"
        found = Found(
            team=str(source.path),
            invariants=tuple(map(str, source.invariants)),
            expects=storm.terms.expects,
            seed=finding.seeds[0],
            violation=finding.violation,
            schedule=finding.schedule,
            digest=finding.digest,
        )
        write_found(found, file)
        written[name] = file
    return written


def keep_findings(storm: Storm, findings: Sequence[Finding], folder: Path) -> dict[str, str]:
    """Run what failed once more, and put its sessions into a data folder; by invariant, the id of the session."""
    from ai_whisperer import export_session, import_into_folder

    kept: dict[str, str] = {}
    for finding in findings:
        if not finding.exact:
            continue
        name = finding.violation.invariant
        session_id = f"storm-{_as_name(name)}"
        with tempfile.TemporaryDirectory(prefix="whisperer-storm-") as place:
            data, archive = Path(place, "data"), Path(place, "session.zip")
            storm.outcome(finding.schedule, keep=data, session_id=session_id)
            try:
                export_session(data, session_id, archive)
                import_into_folder(folder, archive)
            except WhispererError as error:
                raise StormError(f"The session cannot be kept in {folder}: {error.message}") from error
        kept[name] = session_id
    return kept


def tell_report(
    call: Call,
    report: Report,
    *,
    files: Mapping[str, Path],
    kept: Mapping[str, str],
    folder: Path | None,
) -> None:
    if call.output.as_json:
        call.output.json(_record(report, files=files, kept=kept))
        return
    tell = call.output.text
    rate = f" ({report.universes / report.cpu_seconds:.0f} a second)" if report.cpu_seconds else ""
    tell(
        f"{report.team}: {counted(report.universes, 'universe')}, {counted(report.faults, 'fault')}, "
        f"{duration(report.virtual_seconds)} of virtual time, in {report.cpu_seconds:.1f} s of CPU{rate}."
    )
    for finding in report.findings:
        name = finding.violation.invariant
        tell(f"FAILED  {name}: {_where(finding)}")
        tell(_told(finding, files.get(name)))
        if name in kept and folder is not None:
            shown = f"whisperer serve --data {shlex.quote(str(folder))} --session {kept[name]}"
            tell(f"{_INDENT}Its session is kept; the page of this server has its timeline:\n{_INDENT}  {shown}")
    held = len(report.invariants) - len(report.findings)
    tell(f"{held} of {counted(len(report.invariants), 'invariant')} held in all universes.")


def replayed(call: Call, file: Path, *, keep: Path | None) -> int:
    """Play the schedule of a file again; 1 if it fails as it did, or in another way."""
    found = read_found(file)
    source = team_in(Path(found.team), invariants=[Path(each) for each in found.invariants])
    storm = Storm(source, Terms(expects=found.expects))
    outcome = storm.outcome(found.schedule)
    broken = [each for each in outcome.violations if each.invariant == found.violation.invariant]
    others = [each for each in outcome.violations if each.invariant != found.violation.invariant]
    exact = outcome.digest == found.digest
    session_id = None
    if keep is not None and outcome.violations:
        violation = (broken or others)[0]
        finding = Finding(
            violation=violation, seeds=(found.seed,), schedule=found.schedule, digest=outcome.digest, exact=True
        )
        session_id = keep_findings(storm, [finding], keep)[violation.invariant]
    if call.output.as_json:
        record = {"file": str(file), "team": found.team, "ok": not outcome.violations, "exact": exact}
        record |= {"violations": msgspec.to_builtins(outcome.violations), "session": session_id}
        call.output.json(record)
        return 1 if outcome.violations else 0
    tell = call.output.text
    tell(_schedule_told(found.schedule))
    for violation in (*broken, *others):
        tell(f"FAILED  {violation.invariant}: {violation.message}")
    if not outcome.violations:
        tell(f"All holds now: {found.violation.invariant} did not, when the file was written.")
    elif exact:
        tell("It went exactly as when the file was written.")
    else:
        tell("It went another way than when the file was written: the team or the release has changed since.")
    if session_id is not None:
        shown = f"whisperer serve --data {shlex.quote(str(keep))} --session {session_id}"
        tell(f"Its session is kept; the page of this server has its timeline: {shown}")
    return 1 if outcome.violations else 0


def _where(finding: Finding) -> str:
    seeds = [each for each in finding.seeds if each is not None]
    if len(seeds) < len(finding.seeds):
        return "also without any fault" if seeds else "without any fault"
    shown = ", ".join(map(str, seeds[:_SHOWN_SEEDS])) + (" …" if len(seeds) > _SHOWN_SEEDS else "")
    return f"in {counted(len(seeds), 'universe')} (seed {shown})"


def _told(finding: Finding, file: Path | None) -> str:
    lines = [f"{_INDENT}{line}" for line in finding.violation.message.splitlines()]
    if not finding.exact:
        lines.append(
            f"{_INDENT}It does not come back when its universe is run again: something that no schedule decides has a "
            "part in it, such as a tool that reads the clock or takes a chance."
        )
        return "\n".join(lines)
    lines.append(f"{_INDENT}The smallest schedule that does it:")
    lines.append(_schedule_told(finding.schedule))
    if file is not None:
        lines.append(f"{_INDENT}Play it again: whisperer storm --replay {shlex.quote(str(file))}")
    return "\n".join(lines)


def _schedule_told(schedule: Schedule) -> str:
    told = [schedule.interleaving.told(), *(fault.told() for fault in schedule.faults)]
    return "\n".join(f"{_INDENT}  - {each}" for each in told)


def _record(report: Report, *, files: Mapping[str, Path], kept: Mapping[str, str]) -> dict[str, Any]:
    findings = []
    for finding in report.findings:
        name = finding.violation.invariant
        record = msgspec.to_builtins(finding)
        record |= {"file": str(files[name]) if name in files else None, "session": kept.get(name)}
        findings.append(record)
    told: dict[str, Any] = msgspec.to_builtins(report)
    return {**told, "ok": not findings, "findings": findings}


def _as_name(text: str) -> str:
    return re.sub(r"\W+", "-", text)[:80]
