"""`whisperer storm`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.output import console
from ai_whisperer.errors import StormError

if TYPE_CHECKING:
    from ai_whisperer.storm.faults import FaultKind
    from ai_whisperer.storm.stopping import Stopping

_AT_ONCE = 3
_SEEDS = 1000
_SENTENCES = {
    1: "Stopping: no more universes are run, and what was found is shrunk. Press Ctrl-C again to leave it as it is.",
    2: "What was found is left as it is. Press Ctrl-C again to end at once, without a report.",
}
_KINDS = "models, tools, disk, people, kills"


def register(app: typer.Typer) -> None:
    command(app, storm, settings=())


def storm(
    call: Call,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="The team: a conversation script, a Python file that has one, or a recording."
        ),
    ] = None,
    *,
    seeds: Annotated[int, typer.Option("--seeds", metavar="NUMBER", min=1, help="How many universes.")] = _SEEDS,
    first: Annotated[int, typer.Option("--first", metavar="SEED", min=0, help="The seed of the first one.")] = 0,
    invariants: Annotated[
        list[Path] | None,
        typer.Option("--invariants", metavar="FILE", help="A Python file with more that has to hold."),
    ] = None,
    faults: Annotated[
        str, typer.Option("--faults", metavar="KINDS", help=f"What goes wrong: some of {_KINDS}; all, or none.")
    ] = "all",
    expect: Annotated[
        bool, typer.Option("--expect", help="Let what the script expects have to come in every universe.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="NUMBER", min=1, help="How many processes share them.")] = 1,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where schedules that fail are written.")
    ] = Path(),
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="FOLDER", help="A data folder for the sessions that failed.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Play one schedule that was written, exactly.")
    ] = None,
) -> int:
    """Put a team into many universes with faults, and look whether what has to hold does.

    Each seed is a universe of its own: another order of what happens at the same time, slow and failing models, slow
    tools and disks, late people, kill -9 at any moment. No real model is asked, and no real time passes. What does not
    hold is shrunk to a small schedule of faults, in a file that --replay plays again. It leaves with 0 if all holds,
    else with 1.

    Ctrl-C ends it: what was found so far is told and written, and it leaves with 130.
    """
    from ai_whisperer.cli.storming import check_places, keep_all, replayed, tell_report
    from ai_whisperer.storm.sources import team_in
    from ai_whisperer.storm.storming import Storm, Terms, run_storm

    if (file is None) == (replay is None):
        raise typer.BadParameter("Give a file with a team, or --replay with a schedule.")
    if replay is not None:
        given = {"--invariants": invariants, "--expect": expect, "--seeds": seeds != _SEEDS, "--first": first}
        if others := [name for name, is_given in {**given, "--faults": faults != "all"}.items() if is_given]:
            raise typer.BadParameter(
                f"--replay plays one schedule as it was written, so {', '.join(others)} would change nothing. Leave it "
                "out."
            )
        return replayed(call, replay, keep=keep)
    if file is None:
        return 2
    kinds = _kinds(faults)
    check_places(output, keep)
    storm = Storm(team_in(file, invariants=invariants or ()), Terms(kinds=kinds, expects=expect))
    with _progress(call, seeds) as tell, _interruptible(call) as stopping:
        report = run_storm(storm, range(first, first + seeds), jobs=jobs, on_progress=tell, stopping=stopping)
    kept = keep_all(storm, report, output=output, keep=keep)
    tell_report(call, report, kept=kept, folder=keep)
    if kept.trouble is not None:
        raise kept.trouble
    if report.interrupted:
        return 128 + signal.SIGINT
    return 1 if report.findings else 0


def _kinds(given: str) -> tuple[FaultKind, ...]:
    from ai_whisperer.choices import nearest
    from ai_whisperer.storm.faults import FaultKind

    if given in ("all", "none"):
        return tuple(FaultKind) if given == "all" else ()
    names = [name.strip() for name in given.split(",") if name.strip()]
    if not names:
        raise StormError(f"--faults names no kind of fault. There are {_KINDS}; or say all, or none.")
    for name in names:
        if name not in tuple(FaultKind):
            near = nearest(name, [*FaultKind, "all", "none"])
            meant = f" Did you mean '{near}'?" if near else ""
            raise StormError(f"'{name}' is no kind of fault.{meant} There are {_KINDS}; or say all, or none.")
    return tuple(dict.fromkeys(map(FaultKind, names)))


@contextmanager
def _interruptible(call: Call) -> Iterator[Stopping]:
    """Take the first Ctrl-C as a request to stop, the second as one to shrink nothing; the third ends all at once."""
    from ai_whisperer.storm.stopping import Stopping

    stopping = Stopping()

    def ask(*_: object) -> None:
        stopping.ask()
        if stopping.asked >= _AT_ONCE:
            raise KeyboardInterrupt
        if not call.output.as_json:
            with suppress(OSError):
                os.write(sys.stderr.fileno(), f"{_SENTENCES[stopping.asked]}\n".encode())

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stopping
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(call: Call, universes: int) -> Iterator[Callable[[int, int], None]]:
    """A bar for people at a terminal; nothing for others."""
    if call.output.as_json or not sys.stderr.isatty():
        yield lambda _, __: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("Universes", total=universes)

        def tell(done: int, failed: int) -> None:
            bar.update(task, completed=done, description=f"Universes ({failed} failed)" if failed else "Universes")

        yield tell
