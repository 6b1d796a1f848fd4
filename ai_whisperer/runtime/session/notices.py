"""What the notifications about agents, tasks and steps say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ai_whisperer.core.lifecycle import Action
from ai_whisperer.core.marks import without_marks
from ai_whisperer.core.sleeping import shown_until
from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.domain.tasks import Failure, StepKind, StepRecord, TaskRecord

_SUMMARY_CHARACTERS = 200
_BEGINNING_CHARACTERS = 2 * _SUMMARY_CHARACTERS
"""Marks take a part of it: the longest name of an agent and some more."""


def channels_of(response: ChannelResponse) -> dict[str, str]:
    return {"analysis": response.analysis, "commentary": response.commentary, "final": response.final}


def failure_of(failure: Failure) -> dict[str, str]:
    return {"code": failure.code, "message": failure.message}


def summary_of(task: TaskRecord) -> str:
    """The beginning of what a task is about."""
    return without_marks(task.prompt[:_BEGINNING_CHARACTERS])[:_SUMMARY_CHARACTERS]


def queued_of(task: TaskRecord, *, by: str | None = None) -> dict[str, Any]:
    """`by` is who delegated the task, or broadcast the event that it is for."""
    params: dict[str, Any] = {
        "agentId": task.agent_id,
        "taskId": task.id,
        "threadId": task.thread_id,
        "kind": task.kind,
        "priority": task.priority,
        "summary": summary_of(task),
    }
    if task.mail_id is not None:
        params["mailId"] = task.mail_id
    if by is not None:
        params["by"] = by
    return params


def before_of(task: TaskRecord) -> dict[str, Any]:
    """How an ended task is before it is taken up again."""
    params: dict[str, Any] = {
        "state": task.state,
        "createdAt": task.created_at,
        "startedAt": task.started_at,
        "progressPercent": task.progress_percent,
        "progressNote": task.progress_note,
    }
    return params if task.dismissed_at is None else {**params, "dismissed": True}


def started_of(task: TaskRecord, step: StepRecord) -> dict[str, Any]:
    params = _step(task, step)
    if step.attempt > 1:
        params["attempt"] = step.attempt
        params["startedAt"] = step.started_at
    return params


def finished_of(task: TaskRecord, step: StepRecord, *, requests: int) -> dict[str, Any]:
    """`requests` is how many requests to the model have ended with the step."""
    params = _step(task, step)
    params["state"] = step.state
    if requests != 1 and step.kind is StepKind.MODEL:
        params["requests"] = requests
    if step.answer is not None:
        usage = step.answer.usage
        params["usage"] = {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "costUsd": usage.cost_usd,
        }
    if step.result is not None and step.result.is_error:
        params["isError"] = True
    if step.result is not None and step.result.run is not None:
        run = step.result.run
        params["run"] = {
            "sandbox": run.sandbox,
            "wallSeconds": run.wall_seconds,
            "cpuSeconds": run.cpu_seconds,
            "memoryBytes": run.memory_bytes,
        }
    if step.error is not None:
        params["error"] = failure_of(step.error)
    return params


def redefined_of(agent: AgentRecord, missing_tools: Sequence[str]) -> dict[str, Any]:
    definition = agent.definition
    return {
        "agentId": agent.id,
        "name": definition.name or agent.id,
        "description": definition.description,
        "missingTools": list(missing_tools),
    }


def change_of(before: AgentRecord, after: AgentRecord, action: Action, *, offset: float) -> dict[str, Any]:
    change: dict[str, Any] = {
        "agentId": after.id,
        "from": before.state,
        "to": after.state,
        "action": action,
    }
    if after.reason:
        change["reason"] = after.reason
    if after.sleep is not None:
        change["sleepingUntil"] = shown_until(after.sleep, offset=offset)
        change["wakeEvents"] = list(after.sleep.wake_events)
        if after.sleep.by_wall_clock:
            change["sleepingByWallClock"] = True
    if after.paused_limit is not None:
        change["pausedLimit"] = after.paused_limit
    return change


def _step(task: TaskRecord, step: StepRecord) -> dict[str, Any]:
    params: dict[str, Any] = {
        "agentId": task.agent_id,
        "taskId": task.id,
        "stepId": step.id,
        "kind": step.kind,
    }
    if step.call is not None:
        params["tool"] = step.call.name
    return params
