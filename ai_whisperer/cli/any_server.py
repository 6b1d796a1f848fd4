"""The server for a command that needs one: the one that was named or that runs, else one for as long as it takes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from ai_whisperer.cli.calling import Call
from ai_whisperer.cli.connecting import ServerAddress, client_of, known_address
from ai_whisperer.cli.model_choice import check_usable, choose_model, for_workflows
from ai_whisperer.client import Client
from ai_whisperer.errors import ClosedError, ConnectionLostError, StoreInUseError
from ai_whisperer.models.detection import Detection
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from ai_whisperer.tools.function import Tool

_PATIENCE_SECONDS = 5.0
"""So long another process may hold the data folder before it has said where its server is, or after it took it down."""
_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 0.5
_SHOWN = 5


class ServerLeftError(Exception):
    """The server was that of another command, and has left with it. What was given to it is in the data folder."""


class AnyServer(NamedTuple):
    """A client of some server. `config` is what new agents must have for the model that was asked for.

    `failure` waits until the server cannot go on, and returns why.
    """

    client: Client
    config: dict[str, Any]
    failure: Callable[[], Coroutine[Any, Any, BaseException]]
    is_temporary: bool = False
    """Whether it is that of another command, which may end before this one."""


@asynccontextmanager
async def any_server(call: Call, tools: Iterable[Tool] = ()) -> AsyncIterator[AnyServer]:
    """The server that was named or that runs in the data folder, else one with these tools that ends with the block."""
    search = _Search(call, tools)
    waited = 0.0
    async with AsyncExitStack() as stack:
        while True:
            try:
                server = await search.found(stack) or await search.started(stack)
                break
            except (StoreInUseError, ClosedError):  # by a server that is about to come or to go
                if waited > _PATIENCE_SECONDS:
                    raise
            waited += _PAUSE_SECONDS
            await asyncio.sleep(_PAUSE_SECONDS)
        yield server


class _Search:
    """Looks for a server, or starts one. Which model that has is found out once."""

    def __init__(self, call: Call, tools: Iterable[Tool]) -> None:
        self._call = call
        self._tools = tuple(tools)
        self._choice: Detection | None = None

    async def found(self, stack: AsyncExitStack) -> AnyServer | None:
        """The server that there is; None if there is none, or none any more."""
        values = self._call.settings.values
        address = known_address(values)
        if address is None:
            return None
        try:
            client = await stack.enter_async_context(client_of(address, values))
        except ConnectionLostError:
            if known_address(values) == address:
                raise
            return None
        config = {"model": values.model} if self._call.is_given("model") else {}
        return AnyServer(client, config, partial(_left, address, values), address.temporary)

    async def started(self, stack: AsyncExitStack) -> AnyServer:
        values = self._call.settings.values
        if self._choice is None:
            self._choice = await asyncio.to_thread(choose_model, self._call.settings, os.environ)
            check_usable(self._choice)
            if not self._call.output.as_json:
                self._call.output.note(self._choice.told("--model"))
        own = replace(
            values, host="127.0.0.1", port=0, tls_certificate=None, tls_key=None, model=for_workflows(self._choice)
        )
        server = await stack.enter_async_context(running(own, tools=self._tools, temporary=True))
        left = server.unfinished()
        if left and not self._call.output.as_json:
            named = ", ".join(f"{count} of {agent}" for agent, count in list(left.items())[:_SHOWN])
            more = f" and of {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
            self._call.output.note(
                f"Tasks that an earlier command left unfinished continue now: {named}{more}. See them: whisperer tasks"
            )
        client = Client(server.address.url, server.address.token, session_id=values.session)
        return AnyServer(await stack.enter_async_context(client), {}, server.failure)


async def _left(address: ServerAddress, settings: Settings) -> BaseException:
    """Wait until the server of somebody else has left for good. One that is not temporary may be started again, so
    nobody can tell."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        if address.temporary and known_address(settings) != address:
            return ServerLeftError()
