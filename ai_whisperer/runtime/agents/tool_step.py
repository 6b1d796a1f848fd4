"""One tool call of a loop. Whatever goes wrong becomes a result that the model can read."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ai_whisperer.core.marks import harmless
from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolCall, ToolResult
from ai_whisperer.domain.tasks import StepRecord
from ai_whisperer.errors import ToolError, WhispererError
from ai_whisperer.runtime.agents.acting import AgentDesk
from ai_whisperer.secrets import redacted
from ai_whisperer.tools.desk import CoordinationTool
from ai_whisperer.tools.function import CancelSignal, Tool, ToolContext

if TYPE_CHECKING:
    from ai_whisperer.runtime.agents.task import RunningTask
    from ai_whisperer.runtime.agents.work import AgentWork
    from ai_whisperer.runtime.session.workspace import Decision

_SHOWN_CHARACTERS = 1 << 20
"""So much of the output of one call is shown while it runs."""


_current: ContextVar[str | None] = ContextVar("current_step", default=None)


def step_that_calls() -> str | None:
    """The step of the tool call whose code calls this; the call may have ended if it left something behind."""
    return _current.get()


def run_coordination_tool(
    agent: AgentWork, running: RunningTask, decision: Decision, step: StepRecord, tool: CoordinationTool
) -> ToolResult | None:
    """Run a tool that touches only the store: its effects join the decision. None: the call waits for its result."""
    try:
        return tool.run(AgentDesk(agent, running, decision, step), _call_of(step).arguments)
    except WhispererError as error:
        return ToolResult(content=error.message, is_error=True)


async def run_tool(agent: AgentWork, step: StepRecord) -> ToolResult:
    """Run a tool with effects outside. Returns the result, or raises `CancelledError` once the tool has ended."""
    _current.set(step.id)
    try:
        result = await _run(agent, step)
    finally:
        agent.workspace.admission.call_ended(step.id)
    content, untrusted = mended(result.content), result.untrusted
    if result.is_error:
        # It may quote what came from outside, so it is as trusted as the tool's results are.
        tool = agent.registry.find(_call_of(step).name)
        untrusted = isinstance(tool, Tool) and tool.untrusted
    if not untrusted:
        content = harmless(content)  # nobody but the runtime says who said something
    content = agent.workspace.breaches.bounded_result(agent.agent_id, step.task_id, content)
    return replace(result, content=content, untrusted=untrusted, not_run=False)


async def _run(agent: AgentWork, step: StepRecord) -> ToolResult:
    call = _call_of(step)
    try:
        tool = agent.registry.outside(call.name)
        return await tool.call(call.arguments, _context_of(agent, step, tool))
    except WhispererError as error:
        return failed(error.message)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        return ToolResult(content=f"The tool '{call.name}' cancelled itself.", is_error=True)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - anybody's code: what it raises is for the model to read
        return failed(f"The tool '{call.name}' failed: {_words_of(error)}")


def _context_of(agent: AgentWork, step: StepRecord, tool: Tool) -> ToolContext:
    """The context of a call; one that the tool never sees has only what stands for the call."""
    context = ToolContext(
        session_id=step.session_id,
        agent_id=agent.agent_id,
        task_id=step.task_id,
        step_id=step.id,
        cancelled=CancelSignal(),
    )
    if not tool.takes_context:
        return context
    return replace(
        context,
        workplace=agent.workplace,
        progress=_Progress(agent, step).tell,
        guards=partial(agent.workspace.locks.guards.guard, step.task_id),
    )


class _Progress:
    """Passes on what a tool shows of its output while it runs, to those who watch; not without end."""

    def __init__(self, agent: AgentWork, step: StepRecord) -> None:
        self._workspace = agent.workspace
        self._of_step = {"agentId": agent.agent_id, "taskId": step.task_id, "stepId": step.id}
        self._left = _SHOWN_CHARACTERS

    def tell(self, text: str) -> None:
        if not text or self._left <= 0 or not self._workspace.bus.wants_deltas:
            return
        shown = mended(text[: self._left])
        self._left -= len(shown)
        if self._left <= 0:
            shown += "\n[… the rest is not shown while it runs …]\n"
        self._workspace.bus.publish_delta(
            "step.output",
            cause=f"task:{self._of_step['taskId']}",
            at=self._workspace.clock.now(),
            params={**self._of_step, "text": shown},
        )


def failed(told: str) -> ToolResult:
    """What anybody's code said when it failed, which may quote the key or the address that it used."""
    return ToolResult(content=harmless(redacted(mended(told))), is_error=True)


def _words_of(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - anybody's code: an error may fail to say what it is
        return type(error).__name__


def _call_of(step: StepRecord) -> ToolCall:
    if step.call is None:
        raise ToolError(f"Step {step.id} is not a tool call.")
    return step.call


def is_being_cancelled() -> bool:
    """Whether a `CancelledError` that was caught is meant for the task that runs, not something inside of it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
