"""A command that runs while a lock is held: what is told when it cannot be started or ended."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest
import typer

from ai_whisperer.cli.holding import run_while_held
from ai_whisperer.client import Client
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.errors import LockNotHeldError


class LostLock:
    """A server at which the lock is gone when it is to be renewed."""

    def __init__(self) -> None:
        self.name, self.token = "door", 1
        self.released = 0

    async def renew_lock(self, *_: Any) -> None:
        raise LockNotHeldError("Lock 'door' was broken.")

    async def release_lock(self, *_: Any) -> None:
        self.released += 1


def run(lock: LostLock, *command: str) -> int:
    held = run_while_held(cast(Client, lock), cast(LockRecord, lock), command, ttl_seconds=0.03)
    return asyncio.run(held)


def test_a_file_that_is_no_program_is_told_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("not for machines")
    file.chmod(0o700)
    lock = LostLock()
    with pytest.raises(typer.BadParameter, match="notes' that can be run: "):
        run(lock, str(file))
    assert lock.released == 1


def test_a_command_that_may_not_be_ended_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    signal_group = os.killpg

    def forbidden(group: int, number: int) -> None:
        if number:
            raise PermissionError
        signal_group(group, number)

    monkeypatch.setattr(os, "killpg", forbidden)
    lock = LostLock()
    with pytest.raises(LockNotHeldError, match="was broken"):
        run(lock, "sleep", "0.2")
    assert lock.released == 1
