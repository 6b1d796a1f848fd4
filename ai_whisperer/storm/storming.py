"""Many universes: the plain one first, then one for each seed; what fails is shrunk."""

from __future__ import annotations

import gc
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ai_whisperer.choices import nearest
from ai_whisperer.errors import StormError
from ai_whisperer.storm.choosing import schedule_for
from ai_whisperer.storm.faults import FaultKind, Schedule
from ai_whisperer.storm.injecting import MOST_ROUNDS
from ai_whisperer.storm.invariants import BUILTIN, Violation
from ai_whisperer.storm.log import Absent
from ai_whisperer.storm.shrinking import shrunk
from ai_whisperer.storm.stopping import Stopping
from ai_whisperer.storm.team import TeamSource
from ai_whisperer.storm.universe import EXPECTED, RESTLESS, Outcome, run_universe

_SEEDS_AT_ONCE = 20
_FEWEST_ROUNDS, _ROUNDS_OF_PLAIN = 10_000, 20
"""So many rounds, and so many for each of the plain universe, a universe may take: faults do not make that many."""


class Terms(Struct, frozen=True, kw_only=True):
    """What a storm is run with. `expects`: what the script expects has to come in every universe."""

    kinds: tuple[FaultKind, ...] = tuple(FaultKind)
    expects: bool = False


class Failure(Struct, frozen=True, kw_only=True):
    """A universe in which something did not hold; without a seed it is the plain one."""

    seed: int | None
    violation: Violation


class Finding(Struct, frozen=True, kw_only=True):
    """An invariant that does not hold in some universes, with the smallest schedule that was found for it.

    Without a seed it is the plain universe. One that does not come back when its universe is run again is not `exact`:
    the team does something that no schedule decides.
    """

    violation: Violation
    seeds: tuple[int | None, ...]
    schedule: Schedule
    digest: str
    exact: bool = True


class Report(Struct, frozen=True, kw_only=True):
    """What came of a storm. `invariants` are those that were looked at; `cpu_seconds` is for the universes of seeds.

    `tool_failures` has by what tools raised in how many universes they did: it is told to models, and no finding.
    `absent` says which agents and tools invariants ask for that are in no universe. One
    that was `interrupted` has not run all its universes, or has not shrunk all that it found.
    """

    team: str
    invariants: tuple[str, ...]
    universes: int
    failed: int
    faults: int
    virtual_seconds: float
    cpu_seconds: float
    findings: tuple[Finding, ...]
    tool_failures: dict[str, int] = {}
    absent: tuple[str, ...] = ()
    interrupted: bool = False


class _Batch(Struct, frozen=True, kw_only=True):
    """What came of some seeds."""

    universes: int
    faults: int
    virtual_seconds: float
    cpu_seconds: float
    failures: tuple[Failure, ...]
    tool_failures: dict[str, int]
    absent: frozenset[Absent]


Progress = Callable[[int, int], None]
"""Is told how many universes there were, and how many of them failed."""


class Storm:
    """A team, and the universes that it is put into."""

    def __init__(self, source: TeamSource, terms: Terms | None = None) -> None:
        """Runs the plain universe, which says where faults can be. Raises `StormError` if the team cannot be played."""
        self.source = source
        self.terms = terms or Terms()
        self._most_rounds = MOST_ROUNDS
        self.plain = self.outcome(Schedule())
        self._most_rounds = min(MOST_ROUNDS, _FEWEST_ROUNDS + _ROUNDS_OF_PLAIN * self.plain.rounds)
        if self.plain.unmet and not self.plain.violations:
            raise StormError(
                f"{source.path}, {self.plain.unmet[0]}{self._broken_tools()} That is so without any fault: fix the "
                "script first; `whisperer replay` plays it line by line."
            )
        if not self.plain.completed and not self.plain.violations:
            why = f" {self.plain.failures[0]}" if self.plain.failures else ""
            raise StormError(
                f"{source.path}: no task is completed, though nothing goes wrong, so a storm would show nothing."
                f"{self._broken_tools() or why} Let people give its agents something to do, and models answer to it."
            )

    def _broken_tools(self) -> str:
        """What tools raised without any fault."""
        told = "; ".join(each.told for each in self.plain.tool_failures)
        return f" A tool failed: {told}." if told else ""

    @property
    def invariants(self) -> tuple[str, ...]:
        own = tuple(each.name for each in self.source.team().invariants)
        return (*(each.name for each in BUILTIN), RESTLESS, *own, *((EXPECTED,) if self.terms.expects else ()))

    def outcome(self, schedule: Schedule, *, keep: Path | None = None, session_id: str = "storm") -> Outcome:
        """What comes of the universe with this schedule."""
        return run_universe(
            self.source.team(),
            schedule,
            expects=self.terms.expects,
            keep=keep,
            session_id=session_id,
            most_rounds=self._most_rounds,
        )

    def schedule(self, seed: int) -> Schedule:
        return schedule_for(seed, self.plain.shape, self.terms.kinds)

    def finding(self, failures: Sequence[Failure], *, is_enough: Callable[[], bool] = lambda: False) -> Finding:
        """The first of these failures, all of one invariant, made as small as can be until it `is_enough`."""
        first = failures[0]
        schedule = Schedule() if first.seed is None else self.schedule(first.seed)
        seeds = tuple(each.seed for each in failures)
        if self._broken(schedule, first.violation.invariant) is None:
            return Finding(violation=first.violation, seeds=seeds, schedule=schedule, digest="", exact=False)
        smallest = shrunk(
            schedule, lambda each: not is_enough() and self._broken(each, first.violation.invariant) is not None
        )
        violation, digest = self._broken(smallest, first.violation.invariant) or (first.violation, "")
        return Finding(violation=violation, seeds=seeds, schedule=smallest, digest=digest, exact=bool(digest))

    def _broken(self, schedule: Schedule, invariant: str) -> tuple[Violation, str] | None:
        """How the invariant is broken in the universe with this schedule, with the digest of its log, if it is."""
        outcome = self.outcome(schedule)
        found = next((each for each in outcome.violations if each.invariant == invariant), None)
        return None if found is None else (found, outcome.digest)


def run_storm(
    storm: Storm,
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    on_progress: Progress = lambda _, __: None,
    stopping: Stopping | None = None,
) -> Report:
    """Run the universes of the seeds, in so many processes, and shrink the first failure of each invariant.

    When it is asked to stop, no more universes are run; when it is asked again, or as it shrinks, nothing is shrunk
    any further.
    """
    stopping = stopping or Stopping()
    failures = [Failure(seed=None, violation=each) for each in storm.plain.violations]
    batches: list[_Batch] = []
    for batch in _batches(storm, seeds, jobs, stopping):
        batches.append(batch)
        failures += batch.failures
        on_progress(sum(each.universes for each in batches), _failed(failures))
    asked = stopping.asked
    by_invariant: dict[str, list[Failure]] = {}
    for failure in failures:
        by_invariant.setdefault(failure.violation.invariant, []).append(failure)
    return Report(
        team=str(storm.source.path),
        invariants=storm.invariants,
        universes=sum(each.universes for each in batches),
        failed=_failed(failures),
        faults=sum(each.faults for each in batches),
        virtual_seconds=sum(each.virtual_seconds for each in batches),
        cpu_seconds=sum(each.cpu_seconds for each in batches),
        findings=tuple(storm.finding(some, is_enough=lambda: stopping.asked > asked) for some in by_invariant.values()),
        tool_failures=dict(sum((Counter(each.tool_failures) for each in batches), Counter())),
        absent=_told_absent(storm.plain, batches),
        interrupted=stopping.asked > 0,
    )


def _told_absent(plain: Outcome, batches: Sequence[_Batch]) -> tuple[str, ...]:
    """What is in no universe, with what was probably meant."""
    known = {"agent": plain.shape.requests, "tool": plain.shape.calls}
    told = []
    for each in sorted(plain.absent.intersection(*(batch.absent for batch in batches)), key=lambda each: each.name):
        near = nearest(each.name, known[each.kind])
        told.append(f"{each.kind} '{each.name}'" + (f" (did you mean '{near}'?)" if near else ""))
    return tuple(told)


def _failed(failures: Sequence[Failure]) -> int:
    return len({each.seed for each in failures if each.seed is not None})


def _batches(storm: Storm, seeds: Sequence[int], jobs: int, stopping: Stopping) -> Iterator[_Batch]:
    parts = [seeds[at : at + _SEEDS_AT_ONCE] for at in range(0, len(seeds), _SEEDS_AT_ONCE)]
    if jobs <= 1:
        with _quick_collector():
            for part in parts:
                if stopping.asked:
                    return
                yield _run(storm, part, stopping)
        return
    with ProcessPoolExecutor(max_workers=jobs, initializer=_prepare, initargs=(storm,)) as pool:
        try:
            for batch in pool.map(_run_prepared, parts):
                yield batch
                if stopping.asked:
                    pool.shutdown(cancel_futures=True)
                    return
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_prepared: list[Storm] = []
"""The storm of this process, if it is one of several."""


def _prepare(storm: Storm) -> None:
    _prepared[:] = [storm]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that has started this one ends it
    storm.outcome(Schedule())
    gc.collect()
    gc.freeze()


def _run_prepared(seeds: Sequence[int]) -> _Batch:
    return _run(_prepared[0], seeds)


def _run(storm: Storm, seeds: Sequence[int], stopping: Stopping | None = None) -> _Batch:
    begun = time.process_time()
    failures: list[Failure] = []
    tool_failures = Counter[str]()
    universes, faults, virtual = 0, 0, 0.0
    absent = storm.plain.absent
    for seed in seeds:
        if stopping is not None and stopping.asked:
            break
        outcome = storm.outcome(storm.schedule(seed))
        failures += [Failure(seed=seed, violation=each) for each in outcome.violations]
        faults += len(outcome.happened)
        virtual += outcome.seconds
        tool_failures.update({each.told for each in outcome.tool_failures if not each.meant})
        absent &= outcome.absent
        universes += 1
    return _Batch(
        universes=universes,
        faults=faults,
        virtual_seconds=virtual,
        cpu_seconds=time.process_time() - begun,
        failures=tuple(failures),
        tool_failures=dict(tool_failures),
        absent=absent,
    )


@contextmanager
def _quick_collector() -> Iterator[None]:
    """Let the garbage collector leave alone what is there before the first universe: it is looked through else."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
