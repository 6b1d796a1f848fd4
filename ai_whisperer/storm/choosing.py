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
_BEFORE_SHARE = 0.5
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
    makers = [maker for kind, maker in _Chooser(chance, shape).makers() if kind in kinds]
    count = min(int(chance.expovariate(0.5)), MOST_FAULTS) if makers else 0
    faults = tuple(dict.fromkeys(chance.choice(makers)() for _ in range(count)))
    if not faults and interleaving.is_plain:  # the plain universe is run anyway
        interleaving = Interleaving(seed=seed)
    return Schedule(interleaving=interleaving, faults=faults)


class _Chooser:
    """Chooses faults for what there is. One may come after all that the plain universe does: another may do more."""

    def __init__(self, chance: random.Random, shape: Shape) -> None:
        self._chance = chance
        self._shape = shape
        self._agents, self._tools = sorted(shape.requests), sorted(shape.calls)

    def makers(self) -> Iterator[tuple[FaultKind, Callable[[], AnyFault]]]:
        if self._agents:
            yield FaultKind.MODELS, self._slow_model
            yield FaultKind.MODELS, self._failed_model
        if self._tools:
            yield FaultKind.TOOLS, self._slow_tool
        if self._shape.commits:
            yield FaultKind.DISK, self._slow_commit
            yield FaultKind.KILLS, self._kill
        if self._shape.acts:
            yield FaultKind.PEOPLE, self._late_person

    def _request(self) -> tuple[str, int]:
        agent = self._chance.choice(self._agents)
        return agent, self._chance.randint(1, self._shape.requests[agent] + 1)

    def _call(self) -> tuple[str, int]:
        tool = self._chance.choice(self._tools)
        return tool, self._chance.randint(1, self._shape.calls[tool] + 1)

    def _slow_model(self) -> AnyFault:
        agent, number = self._request()
        return SlowModel(agent=agent, request=number, seconds=self._chance.choice(_SECONDS))

    def _failed_model(self) -> AnyFault:
        agent, number = self._request()
        return FailedModel(agent=agent, request=number, failure=self._chance.choice(tuple(ModelFailure)))

    def _slow_tool(self) -> AnyFault:
        tool, number = self._call()
        seconds = self._chance.choice(_SECONDS)
        if self._chance.random() < _BEFORE_SHARE:
            return SlowTool(tool=tool, call=number, before_seconds=seconds)
        return SlowTool(tool=tool, call=number, after_seconds=seconds)

    def _slow_commit(self) -> AnyFault:
        commit = self._chance.randint(1, self._shape.commits)
        return SlowCommit(commit=commit, seconds=self._chance.choice(_DISK_SECONDS))

    def _late_person(self) -> AnyFault:
        return LatePerson(act=self._chance.randint(1, self._shape.acts), seconds=self._chance.choice(_SECONDS))

    def _kill(self) -> AnyFault:
        moments = [KillMoment.BEFORE_COMMIT, KillMoment.AFTER_COMMIT]
        moments += [KillMoment.MODEL_ASKED, KillMoment.MODEL_ANSWERED] if self._agents else []
        moments += [KillMoment.TOOL_BEGAN, KillMoment.TOOL_ENDED] * 2 if self._tools else []
        moment = self._chance.choice(moments)
        if moment in (KillMoment.MODEL_ASKED, KillMoment.MODEL_ANSWERED):
            of, number = self._request()
        elif moment in (KillMoment.TOOL_BEGAN, KillMoment.TOOL_ENDED):
            of, number = self._call()
        else:
            of, number = "", self._chance.randint(1, self._shape.commits)
        return Kill(moment=moment, of=of, number=number, down_seconds=self._chance.choice(_DOWN_SECONDS))
