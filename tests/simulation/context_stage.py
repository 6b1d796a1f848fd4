"""A stage for long conversations: a model that chats and summarizes, and a tool that brings much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.core.contexts import turn_bytes
from ai_whisperer.domain.conversation import Answer, ToolTurn, Usage, UserTurn
from ai_whisperer.domain.tasks import StepKind, StepRecord
from ai_whisperer.models.base import ModelRequest
from tests.simulation import stage
from tests.simulation.stage import Say

SUMMARY_OF = "You write the summary"
WINDOW = 6_000


def is_summary(request: ModelRequest) -> bool:
    return request.system.startswith(SUMMARY_OF)


def texts_of(request: ModelRequest) -> str:
    return "\n".join(
        turn.text if isinstance(turn, UserTurn) else turn.content + turn.note if isinstance(turn, ToolTurn) else ""
        for turn in request.turns
    )


def step_of(request: ModelRequest) -> int:
    """How many answers the task has had, by the answers that the model remembers of it."""
    return STEPS.setdefault(request.step_id, sum(step.startswith(request.step_id.split(".")[0]) for step in STEPS))


STEPS: dict[str, int] = {}


def tokens_of(request: ModelRequest) -> int:
    return sum(map(turn_bytes, request.turns)) // 4


class Listener:
    """A model that chats, summarizes when it is asked to, and remembers all that it was shown."""

    def __init__(self, say: Say = lambda _: "fine " * 100, summary: str = "They talked.") -> None:
        self.requests: list[ModelRequest] = []
        self.summaries: list[ModelRequest] = []
        self._say = say
        self.summary: Callable[[ModelRequest], Answer | str] = lambda _: summary

    def __call__(self, request: ModelRequest) -> Answer | str:
        if is_summary(request):
            self.summaries.append(request)
            return self.summary(request)
        self.requests.append(request)
        return self._say(request)


def call(name: str, **arguments: Any) -> Answer:
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]]) -> Answer:
    """Calls in an answer of a model that does not say how long its request was."""
    return replace(stage.calls(*wanted), usage=Usage())


def play(scenario: stage.Scenario, model: Listener) -> None:
    STEPS.clear()
    stage.play(scenario, model, tools=[big])


async def chat(manager: AsyncAgentSessionManager, count: int, *, agent: str = "ann", first: int = 0) -> None:
    for number in range(first, first + count):
        await manager.run_task(agent, f"Question {number}: {'why ' * 50}", thread_id="talk")


async def create(manager: AsyncAgentSessionManager, **context: Any) -> None:
    await manager.create_agent("ann", {"tools": ["check_mail", "big"], "context": {"window": WINDOW, **context}})


async def steps_of(manager: AsyncAgentSessionManager, kind: StepKind = StepKind.COMPACTION) -> list[StepRecord]:
    tasks = await manager.list_tasks("ann", limit=1_000)
    return [step for task in tasks[::-1] for step in await manager.list_steps(task.id) if step.kind is kind]


@tool
async def big(size: int) -> str:
    """Brings much."""
    return "<" + "x" * size + ">"
