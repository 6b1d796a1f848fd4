"""What the params of notifications have in common."""

from __future__ import annotations

import msgspec


class NotificationParams(msgspec.Struct, frozen=True, kw_only=True):
    pass


class OfAgent(NotificationParams, frozen=True, kw_only=True):
    agent_id: str


class OfTask(OfAgent, frozen=True, kw_only=True):
    task_id: str


class OfStep(OfTask, frozen=True, kw_only=True):
    step_id: str
