"""What tests of the server over a socket say and look at again and again."""

from __future__ import annotations

import gc
import re
from typing import Any

from ai_whisperer.models.base import ModelRequest
from ai_whisperer.server.socket import ClientSocket
from tests.acceptance.raw_socket import Json, RawSocket


def work(client: RawSocket, session: str, prompt: str = "go", **params: Any) -> Json:
    """Give the worker a task and wait for its end."""
    task = client.call("async.sendTask", sessionId=session, agentId="worker", prompt=prompt, **params)
    return client.call("task.wait", sessionId=session, taskId=task["taskId"])


def last_seq(client: RawSocket, session: str) -> int:
    return int(client.call("events.list", sessionId=session, limit=1)["lastSeq"])


def numbers(notes: list[Json]) -> list[int]:
    return [note["params"]["seq"] for note in notes]


def read_up_to(client: RawSocket, seq: int) -> list[Json]:
    """The numbered notifications up to this one."""
    notes = [client.next_note()]
    while notes[-1]["params"]["seq"] < seq:
        notes.append(client.next_note())
    return notes


def sockets() -> list[ClientSocket]:
    """The WebSockets that the server has."""
    found = (each for each in gc.get_objects() if type(each) is ClientSocket)
    return [each for each in found if not each.disconnected and each.transport is not None and each.loop.is_running()]


def say(request: ModelRequest) -> str:
    told = str(request.turns[-1])
    wanted = re.search(r"(\d+) bytes", told)
    return "x" * int(wanted[1]) if wanted else "done"
