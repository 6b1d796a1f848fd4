"""The witness: a process of its own that is the model provider and the world that tools act on.

It writes down each request when it arrives and when it was answered, with the idempotency key, so that the log tells
what really happened however the client ended. `python -m tests.crash.witness LOG` prints its two ports.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from ai_whisperer.testing.model_server import Call, ModelServer, Reply

from .workload import arguments_of, plan_in

_BYTES_FOR_A_TOKEN = 4
_EFFECT_SECONDS = 0.002
_SLOW_EFFECT_SECONDS = {"linger": 0.4}


class PlannedModel:
    """Answers as the plan in the last user message says: the same conversation always gets the same answer.

    A prompt with the word `stumble` gets the provider's own error once; a conversation that lacks an answer or the
    result of a tool is refused. A summary is written of whatever there is.
    """

    def __init__(self) -> None:
        self._stumbled: set[tuple[str, str]] = set()

    def respond(self, body: dict[str, Any], number: int) -> Reply:
        del number
        messages = body["messages"]
        if _text_of(messages[0]).startswith("You write the summary"):
            return Reply(text="They looked things up.")
        last = max(at for at, message in enumerate(messages) if message["role"] == "user")
        prompt = _text_of(messages[last])
        if "stumble" in prompt and (body["model"], prompt) not in self._stumbled:
            self._stumbled.add((body["model"], prompt))
            return Reply(status=503)
        plan = plan_in(prompt)
        roles = [message["role"] for message in messages[last + 1 :]]
        given = roles.count("assistant")
        if roles != [role for calls in plan[:given] for role in ("assistant", *["tool"] * len(calls))]:
            return Reply(status=400, error="The conversation is not whole.")
        size = sum(len(_text_of(message)) for message in messages) // _BYTES_FOR_A_TOKEN
        if given == len(plan):
            return Reply(text="All of it is done.", reasoning="Nothing is left of the plan.", input_tokens=size)
        calls = tuple(Call(call.tool, json.dumps(arguments_of(call, prompt))) for call in plan[given])
        return Reply(tool_calls=calls, input_tokens=size)


class World:
    """Counts the effects of tools. An effect has happened when its request has arrived."""

    def __init__(self, log: TextIO) -> None:
        self._log = log
        self._connections: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(serving)
        serving.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
            effect = json.loads(await reader.readexactly(int(headers["content-length"])))
            line = {"key": headers["idempotency-key"], **effect}
            self._note({"event": "arrived", **line})
            await asyncio.sleep(_SLOW_EFFECT_SECONDS.get(effect["tool"], _EFFECT_SECONDS))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            self._note({"event": "answered", **line})
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def _note(self, line: dict[str, Any]) -> None:
        self._log.write(json.dumps(line) + "\n")


def _text_of(message: dict[str, Any]) -> str:
    content = message["content"] or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


async def _run(path: Path) -> None:
    with path.open("a", encoding="utf-8", buffering=1) as log:
        world = World(log)
        effects = await asyncio.start_server(world.accept, "127.0.0.1", 0)
        async with effects, ModelServer(PlannedModel().respond, log=path) as models:
            effect_port = effects.sockets[0].getsockname()[1]
            sys.stdout.write(json.dumps({"model_url": models.base_url, "effect_port": effect_port}) + "\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)  # until whoever started the witness closes its end or dies


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1])))
