"""Random lives of agents whose models can take little: each request is checked, and each view at the end."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.contexts import told_bytes, turn_bytes
from ai_whisperer.core.view import Journal, view
from ai_whisperer.domain.compactions import CompactedThread
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolTurn, Turn, Usage, UserTurn
from ai_whisperer.domain.tasks import MODEL, StepState, TaskKind
from ai_whisperer.errors import ModelTooLongError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.runtime.agents.conversation import journals_of
from tests.simulation import chaos
from tests.simulation.chaos import Chaos
from tests.simulation.world import AGENTS, World

WINDOW = 5_000
_HEAD = "made shorter by the runtime"
_CARD = "How things stand now"
_SUMMARIES = ("They worked.", "They worked.", "They worked.", " ", "x" * 40_000, "Then I called drop_tables().")


class SmallWorld(World):
    """What models are shown, and what is wrong with it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.broken: list[str] = []
        self.shown: dict[str, tuple[Turn, ...]] = {}
        self.summaries = 0

    def answer(self, request: ModelRequest) -> Answer | str:
        if request.system.startswith("You write the summary"):
            self.summaries += 1
            return self.chance_for(f"summary/{request.step_id}").choice(_SUMMARIES)
        self.broken += [f"{request.step_id}: {problem}" for problem in _problems_of(request)]
        self.shown[request.step_id] = request.turns
        if self.chance_for(f"window/{request.step_id}").random() < 0.03 and len(request.turns) > 6:
            raise ModelTooLongError
        answer = super().answer(request)
        if isinstance(answer, str):
            return Answer(text=f"{answer} {'and so on ' * 60}")
        return replace(answer, text="let me see " * 40, usage=Usage())


def _problems_of(request: ModelRequest) -> list[str]:
    size = told_bytes(request.system, request.tools) + sum(map(turn_bytes, request.turns))
    problems = [f"{size // 4} tokens are too many"] if size // 4 > WINDOW else []
    wanted: list[str] = []
    for turn in request.turns:
        if isinstance(turn, ToolTurn):
            if not wanted or wanted.pop(0) != turn.call.call_id:
                problems.append("a result has no call")
            continue
        if wanted:
            problems.append("a call has no result")
        wanted = [call.call_id for call in turn.answer.calls] if isinstance(turn, AnswerTurn) else []
    heads = [turn.text for turn in request.turns if isinstance(turn, UserTurn) and _HEAD in turn.text]
    problems += ["there is no card behind the summary" for head in heads if _CARD not in head]
    return problems


class SmallChaos(Chaos):
    """Lives with small windows, in which people say more, and most of it in the same threads."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.world: SmallWorld = SmallWorld(seed)
        self.compactions = 0

    async def _send_task(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        self._sent += 1
        task = await manager.send_task(
            agent,
            f"work {self._sent} {'as I said ' * self._random.choice((1, 20))}",
            task_id=f"task{self._sent}",
            thread_id=self._random.choice((None, f"{agent}-thread", f"{agent}-thread", f"{agent}-thread")),
            priority=self._random.choice(("low", "normal", "high")),
        )
        self.world.accepted_tasks.add(task.id)

    def definition(self, name: str) -> dict[str, Any]:
        return {**super().definition(name), "context": {"window": WINDOW}}

    async def check_more(self, manager: AsyncAgentSessionManager) -> None:
        """What the store says that models were shown last is what they were shown."""
        for agent in AGENTS:
            for thread in await manager.list_threads(agent):
                compacted, journals = await journals_of(manager._session.kernel.reads, agent, thread.id)
                self.compactions += compacted is not None
                self.world.broken += [f"{agent}/{thread.id}: {each}" for each in self._misses(compacted, journals)]
        assert not self.world.broken, self.world.broken[0]

    def _misses(self, compacted: CompactedThread | None, journals: list[Journal]) -> list[str]:
        missing = []
        texts = [turn.text for turn in view(compacted, journals).turns if isinstance(turn, UserTurn)]
        said = [task.prompt for task, _ in journals if task.kind is TaskKind.PROMPT]
        missing += [f"what the person said is not shown: {text[:30]}" for text in said if text not in texts]
        done = [
            (task, step)
            for task, steps in journals
            for step in steps
            if step.kind is MODEL and step.state is StepState.DONE
        ]
        if not done or any(step.state is not StepState.DONE for _, steps in journals for step in steps):
            return missing
        task, last = max(done, key=lambda each: (each[1].finished_at or 0.0, each[1].number))
        if journals[-1][0].id != task.id or last.number < _number_in(compacted, task.id):
            return missing
        asked = replace(last, answer=None)  # with what was said to the task before it
        before = [*journals[:-1], (task, [*(step for step in journals[-1][1] if step.number < last.number), asked])]
        turns = tuple(view(compacted, before).turns)
        if self.world.shown[last.id] != turns:
            missing.append(f"{last.id} was shown something else than the journal says")
        return missing


def _number_in(compacted: CompactedThread | None, task_id: str) -> int:
    return compacted.number if compacted is not None and compacted.task_id == task_id else 0


def failure_of(seed: int) -> str | None:
    """What a run with this seed broke, if anything."""
    return chaos.failure_of(seed, SmallChaos)
