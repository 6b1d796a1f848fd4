"""Bugs that several harnesses of this folder have to see."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer.runtime.session.decision import Decision


def acknowledge_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    submit = Decision.submit

    def at_once(self: Decision) -> asyncio.Future[None]:
        submit(self)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    patch.setattr(Decision, "submit", at_once)
