"""Which loop and which tool call the code that runs now belongs to."""

from __future__ import annotations

from contextvars import ContextVar

from ai_whisperer.runtime.session.roles import Loop

current_loop: ContextVar[Loop | None] = ContextVar("current_loop", default=None)
current_step: ContextVar[str | None] = ContextVar("current_step", default=None)


def loop_that_calls() -> Loop | None:
    """The loop that runs the tool which calls this. What a tool leaves behind is its own once the loop has ended."""
    loop = current_loop.get()
    return loop if loop is not None and loop.worker is not None else None


def step_that_calls() -> str | None:
    """The step of the tool call whose code calls this; the call may have ended if it left something behind."""
    return current_step.get()
