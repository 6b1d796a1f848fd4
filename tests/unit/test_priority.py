"""The programs of tools come after the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai_whisperer.sandbox import priority
from ai_whisperer.sandbox.priority import step_back

GONE, STILL_THERE = 1 << 30, (1 << 30) + 1
"""No process has such a number: only the folder of these tests knows the second one."""


@pytest.fixture(autouse=True)
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for `/proc` of a kernel that shares out among sessions."""
    monkeypatch.setattr(priority, "_PROC", tmp_path)
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/sched_autogroup_enabled").write_text("1")
    (tmp_path / str(STILL_THERE)).mkdir()
    return tmp_path


def test_a_session_steps_back_by_any_of_its_processes_that_is_still_there(processes: Path) -> None:
    assert step_back([GONE, STILL_THERE])
    assert (processes / str(STILL_THERE) / "autogroup").read_text() == "10"


def test_a_session_all_of_whose_known_processes_have_left_is_tried_again() -> None:
    assert not step_back([GONE])


def test_a_kernel_that_does_not_share_out_among_sessions_need_not_be_asked_again(processes: Path) -> None:
    (processes / "sys/kernel/sched_autogroup_enabled").unlink()
    assert step_back([GONE])
