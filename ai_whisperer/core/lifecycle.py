"""The five states of an agent and the one table of what leads from one to another."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec.structs import replace

from ai_whisperer.domain.agents import AgentRecord, AgentState, SleepPlan
from ai_whisperer.errors import StateError


class Action(StrEnum):
    """What can happen to an agent. `WORK` and `REST` are the runtime's own: the first loop began, the last ended."""

    START = "start"
    WORK = "work"
    REST = "rest"
    PAUSE = "pause"
    RESUME = "resume"
    SLEEP = "sleep"
    WAKE = "wake"
    STOP = "stop"


_IDLE, _ACTIVE, _PAUSED = AgentState.IDLE, AgentState.ACTIVE, AgentState.PAUSED
_SLEEPING, _STOPPED = AgentState.SLEEPING, AgentState.STOPPED

TRANSITIONS: Mapping[AgentState, Mapping[Action, AgentState]] = {
    _IDLE: {
        Action.START: _IDLE,
        Action.WORK: _ACTIVE,
        Action.PAUSE: _PAUSED,
        Action.SLEEP: _SLEEPING,
        Action.STOP: _STOPPED,
    },
    _ACTIVE: {
        Action.WORK: _ACTIVE,
        Action.REST: _IDLE,
        Action.PAUSE: _PAUSED,
        Action.SLEEP: _ACTIVE,
        Action.WAKE: _ACTIVE,
        Action.STOP: _STOPPED,
    },
    _PAUSED: {Action.RESUME: _IDLE, Action.WAKE: _PAUSED, Action.STOP: _STOPPED},
    _SLEEPING: {
        Action.WORK: _ACTIVE,
        Action.PAUSE: _PAUSED,
        Action.SLEEP: _SLEEPING,
        Action.WAKE: _IDLE,
        Action.STOP: _STOPPED,
    },
    _STOPPED: {Action.START: _IDLE},
}
"""An agent with a sleep plan comes to rest, and is resumed, in `sleeping` instead of `idle`."""

_START, _WORK, _PAUSE = Action.START, Action.WORK, Action.PAUSE
_SLEEP, _WAKE, _STOP = Action.SLEEP, Action.WAKE, Action.STOP
_ENDS_SLEEP = (_WAKE, _STOP, _START)
_OWN = frozenset({Action.WORK, Action.REST})
_BEFORE_START = frozenset({Action.START, Action.STOP})


def allowed(agent: AgentRecord) -> list[Action]:
    """The actions that fit the agent as it is now and change it, in the order of the table."""
    return [action for action in TRANSITIONS[agent.state] if _fits(agent, action)]


def apply(
    agent: AgentRecord,
    action: Action,
    *,
    plan: SleepPlan | None = None,
    reason: str = "",
    limit: str | None = None,
) -> AgentRecord:
    """The agent after the action, the same one if that changes nothing; raises `StateError` if it does not fit.

    `limit` is the one that it is paused for, if it is paused for one.
    """
    if _is_so_already(agent, action):
        return agent
    state = TRANSITIONS[agent.state].get(action)
    if state is None or not _fits(agent, action):
        raise StateError(_refusal(agent, action))
    sleep = agent.sleep
    if action is _SLEEP:
        sleep = None if plan is None else replace(plan, reason=reason)
    elif action in _ENDS_SLEEP:
        sleep = None
    if state is _IDLE and sleep is not None:
        state, reason = _SLEEPING, sleep.reason
    return replace(
        agent,
        state=state,
        sleep=sleep,
        started=(agent.started or action is _START) and action is not _STOP,
        reason=agent.reason if action is _WORK else reason,  # at rest what it worked for is over
        paused_limit=limit if action is _PAUSE else agent.paused_limit if state is _PAUSED else None,
    )


def takes_work(agent: AgentRecord) -> bool:
    """Whether the agent may begin a queued task now."""
    return agent.started and agent.sleep is None and agent.state in (_IDLE, _ACTIVE)


def takes_calls(agent: AgentRecord) -> bool:
    """Whether the agent may answer another that waits for it: asleep too, since it sleeps on afterwards."""
    return agent.started and agent.state in (_IDLE, _ACTIVE, _SLEEPING)


def _is_so_already(agent: AgentRecord, action: Action) -> bool:
    """Whether the agent is what the action would make it, so that there is nothing to refuse and nothing to do."""
    if action is _START:
        return agent.started and agent.state in (_IDLE, _ACTIVE)
    return action is _STOP and agent.state is _STOPPED


def _fits(agent: AgentRecord, action: Action) -> bool:
    if agent.state is _IDLE:
        return (action is not _START) if agent.started else action in _BEFORE_START
    if action is _WAKE:
        return agent.sleep is not None
    return True


def _refusal(agent: AgentRecord, action: Action) -> str:
    described = agent.state.value
    if agent.state is _IDLE:
        described += " and already started" if agent.started else " and not started"
    elif action is Action.WAKE:
        described += ", without a sleep to end"
    options = ", ".join(option for option in allowed(agent) if option not in _OWN)
    return f"Cannot {action} agent '{agent.id}': it is {described}. Allowed now: {options}."
