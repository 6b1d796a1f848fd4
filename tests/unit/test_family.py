"""How the processes of a job are ended, where that is not seen from outside."""

from __future__ import annotations

import os

import pytest

from ai_whisperer.sandbox import family


def test_one_that_may_not_be_killed_keeps_no_other_from_being_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []

    def kill(pid: int, _: int) -> None:
        if pid == 1:
            raise PermissionError
        killed.append(pid)

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(family, "children", lambda pid: {1: [11], 2: [22]}.get(pid, []))
    family.kill_with_all_below([1, 2])
    assert sorted(killed) == [2, 11, 22]
