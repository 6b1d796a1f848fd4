"""What the notifications about agents, tasks and steps say."""

from __future__ import annotations

from typing import Any

from ai_whisperer.conversation import ChannelResponse
from ai_whisperer.core.lifecycle import Action
from ai_whisperer.records import AgentRecord, Failure, StepRecord, TaskRecord

_SUMMARY_CHARACTERS = 200


def channels_of(response: ChannelResponse) -> dict[str, str]:
    return {"analysis": response.analysis, "commentary": response.commentary, "final": response.final}


def failure_of(failure: Failure) -> dict[str, str]:
    return {"code": failure.code, "message": failure.message}


def queued_of(task: TaskRecord) -> dict[str, Any]:
    return {
        "agentId": task.agent_id,
        "taskId": task.id,
        "threadId": task.thread_id,
        "kind": task.kind,
        "priority": task.priority,
        "summary": task.prompt[:_SUMMARY_CHARACTERS],
    }


def started_of(task: TaskRecord, step: StepRecord) -> dict[str, Any]:
    params = _step(task, step)
    if step.attempt > 1:
        params["attempt"] = step.attempt
    return params


def finished_of(task: TaskRecord, step: StepRecord) -> dict[str, Any]:
    params = _step(task, step)
    params["state"] = step.state
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


def change_of(before: AgentRecord, after: AgentRecord, action: Action) -> dict[str, Any]:
    change: dict[str, Any] = {
        "agentId": after.id,
        "from": before.state,
        "to": after.state,
        "action": action,
    }
    if after.reason:
        change["reason"] = after.reason
    if after.sleep is not None:
        change["sleepingUntil"] = after.sleep.until
        change["wakeEvents"] = list(after.sleep.wake_events)
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
