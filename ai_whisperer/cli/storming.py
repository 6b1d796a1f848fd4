"""What `whisperer storm` tells of its findings, writes of them, and keeps."""

from __future__ import annotations

import asyncio
import re
import shlex
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ai_whisperer.cli.amounts import counted
from ai_whisperer.cli.calling import Call
from ai_whisperer.core.moments import duration
from ai_whisperer.errors import DuplicateIdError, StormError, WhispererError
from ai_whisperer.runtime.life.store import open_store
from ai_whisperer.storm.faults import Schedule
from ai_whisperer.storm.found_file import Found, read_found, write_found
from ai_whisperer.storm.invariants import Violation
from ai_whisperer.storm.sources import team_in
from ai_whisperer.storm.storming import Finding, Report, Storm, Terms
from ai_whisperer.storm.universe import Outcome

_SHOWN_SEEDS = 5
_INDENT = " " * 8


def check_places(output: Path | None, keep: Path | None) -> None:
    """Make the folders for what is found, before a universe is run; raises `StormError` if nothing can be put there."""
    for folder, what in ((output, "Schedules"), (keep, "Sessions")):
        if folder is None:
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise StormError(f"{what} cannot be written to {folder}: {error.strerror}. Give another folder.") from error
    if keep is not None and any(keep.iterdir()):
        try:
            asyncio.run(_open_once(keep))
        except WhispererError as error:
            raise StormError(f"Sessions cannot be kept in {keep}: {error.message}") from error


async def _open_once(folder: Path) -> None:
    """Raises a `StoreError` if sessions cannot be put there, for instance since a server has the folder open."""
    await (await open_store(folder)).close()


class Kept(Struct, kw_only=True):
    """By invariant, what was written of a finding: the file with its schedule, the id of its session.

    `trouble` is why something was not.
    """

    files: dict[str, Path] = {}
    sessions: dict[str, str] = {}
    trouble: StormError | None = None


def keep_all(storm: Storm, report: Report, *, output: Path, keep: Path | None) -> Kept:
    """Write the schedules of what was found, and keep its sessions, as far as that works."""
    kept = Kept()
    for finding in report.findings:
        if not finding.exact:
            continue
        name = finding.violation.invariant
        try:
            kept.files[name] = _write_finding(storm, finding, output)
            if keep is not None:
                kept.sessions[name] = keep_finding(storm, finding, keep)
        except StormError as error:
            kept.trouble = kept.trouble or error
    return kept


def _write_finding(storm: Storm, finding: Finding, folder: Path) -> Path:
    source = storm.source
    found = Found(
        team=str(source.path),
        invariants=tuple(map(str, source.invariants)),
        expects=storm.terms.expects,
        seed=finding.seeds[0],
        violation=finding.violation,
        schedule=finding.schedule,
        digest=finding.digest,
    )
    return write_found(found, folder / f"storm-{source.path.stem}-{_as_name(finding.violation.invariant)}.json")


def keep_finding(storm: Storm, finding: Finding, folder: Path) -> str:
    """Run what failed once more, and put its session into a data folder, with a number if there is one of that name.

    Returns the id of the session.
    """
    from ai_whisperer import export_session, import_into_folder

    session_id = f"storm-{_as_name(finding.violation.invariant)}"
    with tempfile.TemporaryDirectory(prefix="whisperer-storm-") as place:
        data, archive = Path(place, "data"), Path(place, "session.zip")
        storm.outcome(finding.schedule, keep=data, session_id=session_id)
        try:
            export_session(data, session_id, archive)
            for number in count(1):
                free_id = session_id if number == 1 else f"{session_id}-{number}"
                with suppress(DuplicateIdError):
                    import_into_folder(folder, archive, session_id=free_id)
                    return free_id
        except WhispererError as error:
            raise StormError(f"The session cannot be kept in {folder}: {error.message}") from error
    raise AssertionError("numbers have no end")


def tell_report(
    call: Call,
    report: Report,
    *,
    kept: Kept,
    folder: Path | None,
) -> None:
    if call.output.as_json:
        call.output.json(_record(report, kept))
        return
    tell = call.output.text
    if report.interrupted:
        tell("Interrupted: this was found so far.")
    rate = f" ({report.universes / report.cpu_seconds:.0f} a second)" if report.cpu_seconds else ""
    tell(
        f"{report.team}: {counted(report.universes, 'universe')}, {counted(report.faults, 'fault')}, "
        f"{duration(report.virtual_seconds)} of virtual time, in {report.cpu_seconds:.1f} s of CPU{rate}."
    )
    for finding in report.findings:
        name = finding.violation.invariant
        tell(f"FAILED  {name}: {_where(finding)}")
        tell(_told(finding, kept.files.get(name)))
        if name in kept.sessions and folder is not None:
            shown = f"whisperer serve --data {shlex.quote(str(folder))} --session {kept.sessions[name]}"
            tell(f"{_INDENT}Its session is kept; the page of this server has its timeline:\n{_INDENT}  {shown}")
    for told, universes in report.tool_failures.items():
        tell(f"NOTE    a tool failed, and its model was told: {told}: in {counted(universes, 'universe')}")
    for each in report.absent:
        tell(f"NOTE    invariants ask for the {each}, which no universe has.")
    held = len(report.invariants) - len(report.findings)
    tell(f"{held} of {counted(len(report.invariants), 'invariant')} held in all universes.")


def replayed(call: Call, file: Path, *, keep: Path | None) -> int:
    """Play the schedule of a file again; 1 if it fails as it did, or in another way."""
    check_places(None, keep)
    found = read_found(file)
    source = team_in(Path(found.team), invariants=[Path(each) for each in found.invariants])
    storm = Storm(source, Terms(expects=found.expects))
    outcome = storm.outcome(found.schedule)
    session_id, trouble = None, None
    if keep is not None and outcome.violations:
        violation = _sorted_by(found, outcome)[0]
        finding = Finding(
            violation=violation, seeds=(found.seed,), schedule=found.schedule, digest=outcome.digest, exact=True
        )
        try:
            session_id = keep_finding(storm, finding, keep)
        except StormError as error:
            trouble = error
    code = _tell_replayed(call, found, outcome, file=file, keep=keep, session_id=session_id)
    if trouble is not None:
        raise trouble
    return code


def _tell_replayed(
    call: Call, found: Found, outcome: Outcome, *, file: Path, keep: Path | None, session_id: str | None
) -> int:
    exact = outcome.digest == found.digest
    if call.output.as_json:
        record = {"file": str(file), "team": found.team, "ok": not outcome.violations, "exact": exact}
        record |= {"violations": msgspec.to_builtins(outcome.violations), "session": session_id}
        call.output.json(record)
        return 1 if outcome.violations else 0
    tell = call.output.text
    tell(_schedule_told(found.schedule))
    for fault in found.schedule.faults:
        if fault not in outcome.happened:
            tell(f"NOTE    it did not come to this: {fault.told()}")
    for violation in _sorted_by(found, outcome):
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


def _sorted_by(found: Found, outcome: Outcome) -> list[Violation]:
    """What does not hold, first that which did not when the file was written."""
    return sorted(outcome.violations, key=lambda each: each.invariant != found.violation.invariant)


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


def _record(report: Report, kept: Kept) -> dict[str, Any]:
    findings = []
    for finding in report.findings:
        name = finding.violation.invariant
        record = msgspec.to_builtins(finding)
        file = kept.files.get(name)
        record |= {"file": None if file is None else str(file), "session": kept.sessions.get(name)}
        findings.append(record)
    told: dict[str, Any] = msgspec.to_builtins(report)
    return {**told, "ok": not findings, "findings": findings}


def _as_name(text: str) -> str:
    return re.sub(r"\W+", "-", text)[:80]
