"""`python -m bench`: all workloads for the floor and for us, round by round, in one table and one JSON file."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from bench import (
    import_time,
    report,
    w1_messages,
    w2_tasks,
    w3_agents,
    w4_restart,
    w5_coordination,
    w6_server,
    w7_sandbox,
    w8_files,
    w9_models,
    w10_growth,
    w11_bad_input,
    w12_refusals,
    w13_postgresql,
    w14_nodes,
    w15_hosts,
)
from bench.probe import REPOSITORY, Probe, ProbeError, Sample, Samples
from bench.report import Figure

RESULTS = REPOSITORY / "bench" / "results" / "latest.json"
DRAWING = RESULTS.with_name("growth.png")
"""What the README shows: kept in git, so a quick look has a file of its own."""
_DEFAULT_REPEATS = 3


class Workload(Protocol):
    """What a module of a workload has."""

    TITLE: str

    def probes(self, *, quick: bool) -> list[Probe]: ...

    def figures(self, samples: Samples) -> list[Figure]: ...


WORKLOADS: dict[str, Workload] = {
    module.TITLE: module
    for module in (
        w1_messages,
        w2_tasks,
        w3_agents,
        w4_restart,
        w5_coordination,
        w6_server,
        w7_sandbox,
        w8_files,
        w9_models,
        w10_growth,
        w11_bad_input,
        w12_refusals,
        w13_postgresql,
        w14_nodes,
        w15_hosts,
        import_time,
    )
}


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        return _measure(given)
    except ProbeError as error:
        print(f"A measurement failed, so nothing was reported. {error}", file=sys.stderr)
        return 2


def _measure(given: argparse.Namespace) -> int:
    repeats = given.repeats or (1 if given.quick else _DEFAULT_REPEATS)
    facts = report.machine_facts(given.folder)
    figures: dict[str, list[Figure]] = {}
    grown = ""
    for title in given.only or WORKLOADS:
        samples = _rounds(WORKLOADS[title], given.folder, repeats=repeats, quick=given.quick)
        figures[title] = WORKLOADS[title].figures(samples)
        if title == w10_growth.TITLE:
            file = RESULTS.with_name("growth-quick.png") if given.quick else DRAWING
            grown = w10_growth.tables(samples, facts=facts, file=file) + "\n"
    facts |= {"load_average_at_end": list(os.getloadavg()), "repeats": repeats, "quick": given.quick}
    print(grown + report.table(figures))
    print("\n" + ", ".join(f"{name} {value}" for name, value in facts.items()))
    _write(facts, figures)
    missed = [figure.name for found in figures.values() for figure in found if figure.is_met is False]
    print(f"{len(missed)} target(s) missed." if missed else "All targets reached.")
    return 1 if missed and given.check else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), help="run these workloads alone")
    parser.add_argument("--repeats", type=_count, help=f"rounds of each workload (default {_DEFAULT_REPEATS})")
    parser.add_argument("--quick", action="store_true", help="smaller and one round: shows that it runs, not how well")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where databases are made")
    return parser


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("give at least 1")
    return int(text)


def _rounds(workload: Workload, folder: Path, *, repeats: int, quick: bool) -> Samples:
    """Take every probe once in each round, so that both sides see the same moods of the machine."""
    probes = workload.probes(quick=quick)
    samples: dict[str, list[Sample]] = {probe.name: [] for probe in probes}
    for number in range(1, repeats + 1):
        print(f"{workload.TITLE}: round {number} of {repeats}", file=sys.stderr)
        for probe in probes:
            with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as place:
                samples[probe.name].append(probe.take(Path(place)))
    return samples


def _write(facts: dict[str, object], figures: dict[str, list[Figure]]) -> None:
    found = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": facts,
        "workloads": {title: [figure.as_json() for figure in each] for title, each in figures.items()},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
