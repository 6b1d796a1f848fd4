"""Notifications about tool calls that wait for their turn at what others touch."""

from __future__ import annotations

from ai_whisperer.domain.notifications.base import OfStep, notification


class OfResources(OfStep, frozen=True, kw_only=True):
    resources: list[str]
    access: str


@notification("resource.waiting", "waits for its turn at {resources}[, in use by {@holders}]")
class ResourceWaiting(OfResources, frozen=True, kw_only=True):
    """A tool call waits for its turn: others touch what it touches. Its agent continues by itself."""

    holders: list[str]


@notification("resource.granted", "has its turn at {resources} after {waitedSeconds:duration}")
class ResourceGranted(OfResources, frozen=True, kw_only=True):
    """A tool call that waited for its turn has it, and begins."""

    waited_seconds: float
