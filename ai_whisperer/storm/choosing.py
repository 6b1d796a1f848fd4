"""Which faults a universe has: its seed chooses them, among those that fit what the team does without any."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec import Struct

from ai_whisperer.storm.faults import (
    AnyFault,
    FailedModel,
    FaultKind,
    Interleaving,
    Kill,
    KillMoment,
    LatePerson,
    ModelFailure,
    Schedule,
    SlowCommit,
    SlowModel,
    SlowTool,
)

MOST_FAULTS = 6
_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 600.0)
_DISK_SECONDS = (0.05, 0.5, 2.0, 10.0)
_DOWN_SECONDS = (0.0, 1.0, 30.0, 3600.0)
_PLAIN_SHARE = 0.1
"""So many universes keep the plain order: then a fault alone shows what it does."""


class Shape(Struct, frozen=True, kw_only=True):
    """What the team does in the plain universe: how often there is something that a fault can hit.

    `requests` are counted by agent, `calls` by tool; `acts` are what people do.
    """

    requests: Mapping[str, int] = {}
    calls: Mapping[str, int] = {}
    commits: int = 0
    acts: int = 0


def schedule_for(seed: int, shape: Shape, kinds: Collection[FaultKind] = tuple(FaultKind)) -> Schedule:
    """The schedule of the universe with this seed; the same for the same arguments, on every machine."""
    chance = random.Random(f"storm {seed}")  # noqa: S311 - chance that can be repeated is the purpose
    interleaving = Interleaving() if chance.random() < _PLAIN_SHARE else Interleaving(seed=seed)
    makers = [maker for kind, maker in _makers(chance, shape) if kind in kinds]
    count = min(int(chance.expovariate(0.5)), MOST_FAULTS) if makers else 0
    faults = tuple(dict.fromkeys(chance.choice(makers)() for _ in range(count)))
    if not faults and interleaving.is_plain:  # the plain universe is run anyway
        interleaving = Interleaving(seed=seed)
    return Schedule(interleaving=interleaving, faults=faults)


def _makers(chance: random.Random, shape: Shape) -> Iterator[tuple[FaultKind, Callable[[], AnyFault]]]:
    """What can be chosen: only what there is something for. A fault may come after what the plain universe does."""
    agents, tools = sorted(shape.requests), sorted(shape.calls)

    def request() -> tuple[str, int]:
        agent = chance.choice(agents)
        return agent, chance.randint(1, shape.requests[agent] + 1)

    def call() -> tuple[str, int]:
        tool = chance.choice(tools)
        return tool, chance.randint(1, shape.calls[tool] + 1)

    def slow_model() -> AnyFault:
        agent, number = request()
        return SlowModel(agent=agent, request=number, seconds=chance.choice(_SECONDS))

    def failed_model() -> AnyFault:
        agent, number = request()
        return FailedModel(agent=agent, request=number, failure=chance.choice(tuple(ModelFailure)))

    def slow_tool() -> AnyFault:
        tool, number = call()
        seconds = chance.choice(_SECONDS)
        if chance.random() < 0.5:
            return SlowTool(tool=tool, call=number, before_seconds=seconds)
        return SlowTool(tool=tool, call=number, after_seconds=seconds)

    def slow_commit() -> AnyFault:
        return SlowCommit(commit=chance.randint(1, shape.commits), seconds=chance.choice(_DISK_SECONDS))

    def late_person() -> AnyFault:
        return LatePerson(act=chance.randint(1, shape.acts), seconds=chance.choice(_SECONDS))

    def kill() -> AnyFault:
        moments = [KillMoment.BEFORE_COMMIT, KillMoment.AFTER_COMMIT] if shape.commits else []
        moments += [KillMoment.MODEL_ASKED, KillMoment.MODEL_ANSWERED] if agents else []
        moments += [KillMoment.TOOL_BEGAN, KillMoment.TOOL_ENDED] * 2 if tools else []
        moment = chance.choice(moments)
        of, number = "", chance.randint(1, max(shape.commits, 1))
        if moment in (KillMoment.MODEL_ASKED, KillMoment.MODEL_ANSWERED):
            of, number = request()
        elif moment in (KillMoment.TOOL_BEGAN, KillMoment.TOOL_ENDED):
            of, number = call()
        return Kill(moment=moment, of=of, number=number, down_seconds=chance.choice(_DOWN_SECONDS))

    if agents:
        yield FaultKind.MODELS, slow_model
        yield FaultKind.MODELS, failed_model
    if tools:
        yield FaultKind.TOOLS, slow_tool
    if shape.commits:
        yield FaultKind.DISK, slow_commit
    if shape.acts:
        yield FaultKind.PEOPLE, late_person
    if shape.commits or agents or tools:
        yield FaultKind.KILLS, kill
