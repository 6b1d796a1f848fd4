"""The worker's side of the wire: a model and tools over plain sockets, with a point to die at around each exchange."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from ai_whisperer.domain.conversation import AnswerTurn, ToolCall, ToolTurn, Turn, Usage, UserTurn
from ai_whisperer.errors import ModelCutOffError, ModelRefusedError, ModelServerError
from ai_whisperer.models.base import CallRequested, Finished, ModelRequest, ReasoningDelta, StreamEvent, TextDelta
from ai_whisperer.tools.function import Tool, ToolContext, tool

from .kill_points import KillSwitch

_MIDDLE_OF_STREAM = 2


class HttpModel:
    """A model of the chat completions protocol, with the step id as the idempotency key."""

    def __init__(self, name: str, url: str, switch: KillSwitch) -> None:
        self._name = name
        self._url = url
        self._switch = switch

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        messages = [{"role": "system", "content": request.system}, *_messages(request.turns)]
        body = {"model": self._name, "stream": True, "messages": messages}
        self._switch.reached("model.asking")
        async with _exchange(f"{self._url}/chat/completions", request.step_id, body) as reader:
            status = int((await reader.readline()).split()[1])
            if status != HTTPStatus.OK:
                raise ModelServerError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ModelRefusedError
            calls: list[dict[str, str]] = []
            usage = Usage()
            async for chunk in self._chunks(reader):
                if chunk.get("usage"):
                    usage = Usage(
                        input_tokens=chunk["usage"]["prompt_tokens"], output_tokens=chunk["usage"]["completion_tokens"]
                    )
                for choice in chunk["choices"]:
                    delta = choice["delta"]
                    if delta.get("reasoning_content"):
                        yield ReasoningDelta(text=delta["reasoning_content"])
                    if delta.get("content"):
                        yield TextDelta(text=delta["content"])
                    _gather(calls, delta.get("tool_calls", ()))
        for call in calls:
            yield CallRequested(call=ToolCall(call_id=call["id"], name=call["name"], arguments=call["arguments"]))
        self._switch.reached("model.answered")
        yield Finished(usage=usage, finish="tool_call" if calls else "stop", model=self._name)

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _chunks(self, reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        received = 0
        while line := await reader.readline():
            if line.startswith(b"data: [DONE]"):
                return
            if line.startswith(b"data: "):
                received += 1
                if received == _MIDDLE_OF_STREAM:
                    self._switch.reached("model.streaming")
                yield json.loads(line.removeprefix(b"data: "))
        raise ModelCutOffError


def tools_of(run: str, effect_port: int, switch: KillSwitch) -> list[Tool]:
    """The tools of a session: what they do to the world, the witness sees."""

    async def act(name: str, label: str, context: ToolContext) -> str:
        switch.reached("tool.acting")
        effect = {"model": run, "tool": name, "label": label}
        async with _exchange(f"http://127.0.0.1:{effect_port}/{name}", context.step_id, effect) as reader:
            switch.reached("tool.sent")
            await reader.readline()
        switch.reached("tool.acted")
        return f"{name} {label}: done"

    @tool(idempotent=True)
    async def look_up(label: str, context: ToolContext) -> str:
        """Look something up; it may be repeated."""
        return await act("look_up", label, context)

    @tool(idempotent=True)
    async def linger(label: str, context: ToolContext) -> str:
        """Do something slow; it may be repeated."""
        return await act("linger", label, context)

    @tool
    async def charge(label: str, context: ToolContext) -> str:
        """Take money; it may not be repeated."""
        return await act("charge", label, context)

    @tool(idempotent=True)
    def poison(label: str) -> str:
        """Kill the process, each time."""
        os.kill(os.getpid(), signal.SIGKILL)
        return label

    @tool
    def detonate(label: str) -> str:
        """Kill the process, in a way that may not be repeated."""
        os.kill(os.getpid(), signal.SIGKILL)
        return label

    return [look_up, linger, charge, poison, detonate]


@asynccontextmanager
async def _exchange(url: str, key: str, body: dict[str, Any]) -> AsyncIterator[asyncio.StreamReader]:
    """Send a request; the response is read by the caller."""
    where = urlsplit(url)
    content = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        head = f"POST {where.path} HTTP/1.1\r\nIdempotency-Key: {key}\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        await writer.drain()
        yield reader
    finally:
        writer.close()


def _messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        match turn:
            case UserTurn():
                messages.append({"role": "user", "content": turn.text})
            case AnswerTurn():
                messages.append({"role": "assistant", "content": turn.answer.text})
            case ToolTurn():
                messages.append({"role": "tool", "tool_call_id": turn.call.call_id, "content": turn.content})
    return messages


def _gather(calls: list[dict[str, str]], pieces: Sequence[dict[str, Any]]) -> None:
    for piece in pieces:
        if "id" in piece:
            calls.append({"id": piece["id"], "name": piece["function"]["name"], "arguments": ""})
        calls[piece["index"]]["arguments"] += piece["function"].get("arguments", "")
