"""Whatever fails at whatever call: every request is answered or the server ends with a sentence, and nothing is lost.

`WHISPERER_CRASH_FAULTS` is how many random faults are tried beside the fixed ones.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.planted import Caught

from .harness import Case, Zygote
from .injection import CALLS, ERRORS, FILE_CALLS, HANG, SURPRISE, Fault
from .planted_bugs import PLANTED_BUGS

RANDOM_FAULTS = int(os.environ.get("WHISPERER_CRASH_FAULTS", "3"))
_SEED = int(os.environ.get("WHISPERER_CRASH_FAULTS_SEED", "1"))
_KINDS = (*ERRORS, HANG)

FAULTS = (
    (Fault(call="checkpoint", kind="full", lasting=True), 0),
    (Fault(call="checkpoint", kind="io", number=3), 1),
    (Fault(call="checkpoint", kind=HANG, number=3), 3),
    (Fault(call="commit", kind="full", number=9), 1),
    (Fault(call="commit", kind="io", number=9, late=True), 1),
    (Fault(call="begin", kind=HANG, number=9), 3),
    (Fault(call="write", kind=SURPRISE, number=40), 1),
    (Fault(call="file.sync", kind="io", number=40, lasting=True), 1),
    (Fault(call="open", kind="full"), 1),
    (Fault(call="close", kind=HANG, number=2), 3),
)
"""Faults, and what the server has to end with after it was asked to leave, if it lived so long."""

_TRIES_FOR_A_PLANTED_BUG = 3


@pytest.mark.parametrize(("fault", "exit_code"), FAULTS, ids=str)
def test_a_fault_at_a_call_hangs_nobody_and_loses_nothing(
    zygote: Zygote, tmp_path: Path, fault: Fault, exit_code: int
) -> None:
    case = Case(zygote, tmp_path, fault).play()
    assert not case.findings, case.told
    assert case.exit_code == exit_code, case.told


def test_random_faults_hang_nobody_and_lose_nothing(
    zygote: Zygote, calls: Mapping[str, int], tmp_path: Path, report: Callable[[str], None]
) -> None:
    assert set(calls) >= {*CALLS, *FILE_CALLS} - {"rollback"}, "a call that is never made is never tried"
    chance = random.Random(_SEED)
    endings: Counter[int | None] = Counter()
    bad = []
    for number in range(RANDOM_FAULTS):
        case = Case(zygote, tmp_path / str(number), _random_fault(chance, calls)).play()
        endings[case.exit_code] += 1
        if case.findings:
            bad.append(case.told)
    told = ", ".join(f"{count} ended with {code}" for code, count in sorted(endings.items(), key=str))
    report(f"{RANDOM_FAULTS} random faults (seed {_SEED}): {told}; {len(bad)} did harm")
    assert not bad, "\n\n".join(bad)


def _random_fault(chance: random.Random, calls: Mapping[str, int]) -> Fault:
    call = chance.choice([each for each in (*CALLS, *FILE_CALLS) if each in calls])
    return Fault(
        call=call,
        kind=chance.choice(_KINDS),
        number=chance.randint(1, calls[call]),
        lasting=chance.random() < 0.3,
        late=chance.random() < 0.2 and not call.startswith("file."),
    )


@pytest.mark.planted("faults of the disk", unit="server")
@pytest.mark.parametrize("name", PLANTED_BUGS)
def test_a_planted_bug_is_found(zygote: Zygote, tmp_path: Path, name: str, caught: Caught) -> None:
    bug, told = PLANTED_BUGS[name], ""
    for attempt in range(_TRIES_FOR_A_PLANTED_BUG):  # what is under way when the fault comes is left to the machine
        case = Case(zygote, tmp_path / f"{attempt}", bug.fault, bug=name, patience_seconds=1.5).play()
        if found := [each for each in case.findings if bug.finding in each]:
            caught(f"{case.fault}: {found[0]}", after=attempt + 1)
            return
        told = case.told
    pytest.fail(told)
