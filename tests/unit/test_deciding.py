"""A person at the terminal decides about a tool call."""

from __future__ import annotations

import asyncio
import io

import pytest

from ai_whisperer.cli.deciding import can_ask, decide
from ai_whisperer.cli.output import Output
from ai_whisperer.client import Client
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.errors import StateError

WAITING = ApprovalRecord(
    session_id="s", id="t.2", agent_id="clerk", task_id="t", tool="pay", arguments='{"to":"\x1b[2J"}', digest="d"
)


class Desk(Client):
    """A server that knows one approval and writes down what is decided."""

    def __init__(self, failure: StateError | None = None) -> None:
        self.decided: list[tuple[str, str | None]] = []
        self._failure = failure

    async def get_approval(self, approval_id: str) -> ApprovalRecord:
        assert approval_id == WAITING.id
        return WAITING

    async def approve(self, approval_id: str, *, digest: str | None = None, reason: str = "") -> ApprovalRecord:
        return self._decide(f"approve {approval_id}{reason}", digest)

    async def refuse(self, approval_id: str, *, reason: str = "") -> ApprovalRecord:
        return self._decide(f"refuse {approval_id}", reason)

    def _decide(self, what: str, detail: str | None) -> ApprovalRecord:
        if self._failure is not None:
            raise self._failure
        self.decided.append((what, detail))
        return WAITING


@pytest.mark.parametrize(
    ("typed", "decided"),
    [
        ("y\n", ("approve t.2", "d")),
        ("n\n", ("refuse t.2", "The person at the terminal said no.")),
        ("", ("refuse t.2", "The person at the terminal said no.")),
    ],
)
def test_only_a_yes_to_what_was_shown_allows_the_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, decided: tuple[str, str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    desk = Desk()
    asyncio.run(decide(desk, Output(as_json=False), "t.2"))
    assert desk.decided == [decided]
    told = capsys.readouterr().err
    assert "clerk wants to call pay with" in told
    assert "\\x1b[2J" in told
    assert "\x1b" not in told


def test_a_decision_that_comes_too_late_is_told_and_harms_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    asyncio.run(decide(Desk(StateError("It is withdrawn already.")), Output(as_json=False), "t.2"))
    assert "It is withdrawn already." in capsys.readouterr().err


def test_nobody_is_asked_without_a_terminal() -> None:
    assert not can_ask(Output(as_json=False))
