"""A real HTTP server and a real client, for the tests of providers."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ai_whisperer.domain.conversation import Answer, ToolSpec, Turn, UserTurn
from ai_whisperer.errors import (
    ModelError,
)
from ai_whisperer.models.base import (
    Alive,
    ModelRequest,
    StreamEvent,
    collect,
)
from ai_whisperer.models.openai_chat import OpenAIChatModel
from ai_whisperer.models.pydantic_ai import PydanticAIModel
from ai_whisperer.testing.model_server import ModelServer, Reply, Respond

ProviderModel = OpenAIChatModel | PydanticAIModel
CLIENTS: dict[str, type[ProviderModel]] = {"own": OpenAIChatModel, "pydantic-ai": PydanticAIModel}
"""What asks providers: the same is expected of each. The fixture `provider_client` says which one it is now."""
_current = ["own"]

KEY = "sk-canary-0123456789abcdef"
ADD = ToolSpec(
    name="add",
    description="Adds two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)
HELLO = Reply(text="Hello there, how are you today?", reasoning="They greet me, so I greet them.")


def ask(*turns: Turn, **fields: Any) -> ModelRequest:
    return ModelRequest(
        **{"step_id": "t1.1", "agent_id": "ada", "system": "Be brief.", "turns": turns or (UserTurn(text="Hi"),)}
        | fields
    )


def use_client(name: str) -> None:
    """Let this client ask from now on."""
    _current[0] = name


def is_own() -> bool:
    return _current[0] == "own"


def model_named(name: str) -> ProviderModel:
    return CLIENTS[_current[0]](name)


@asynccontextmanager
async def model_at(base_url: str, name: str = "openai-chat:test-model") -> AsyncIterator[ProviderModel]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", base_url)
        model = model_named(name)
        try:
            yield model
        finally:
            await model.close()


def with_server(respond: Respond | Reply, body: Callable[[ProviderModel, ModelServer], Awaitable[None]]) -> None:
    async def run() -> None:
        decide: Respond = (lambda _body, _number: respond) if isinstance(respond, Reply) else respond
        async with ModelServer(decide) as server, model_at(server.base_url) as model:
            await body(model, server)

    asyncio.run(run())


def events_of(reply: Reply, request: ModelRequest | None = None) -> list[StreamEvent]:
    events: list[StreamEvent] = []

    async def body(model: ProviderModel, _: ModelServer) -> None:
        events.extend([event async for event in model.stream(request or ask()) if not isinstance(event, Alive)])

    with_server(reply, body)
    return events


def answer_to(reply: Reply, request: ModelRequest | None = None) -> Answer:
    answers: list[Answer] = []

    async def body(model: ProviderModel, _: ModelServer) -> None:
        answers.append(await collect(model.stream(request or ask())))

    with_server(reply, body)
    return answers[0]


def failure_of(reply: Reply, request: ModelRequest | None = None) -> ModelError:
    """The error of one request, which must not have been repeated."""
    errors: list[ModelError] = []

    async def body(model: ProviderModel, server: ModelServer) -> None:
        with pytest.raises(ModelError) as caught:
            await collect(model.stream(request or ask()))
        errors.append(caught.value)
        assert len(server.received) == 1

    with_server(reply, body)
    return errors[0]


def body_sent(request: ModelRequest, *, answer: Reply = HELLO) -> dict[str, Any]:
    bodies: list[dict[str, Any]] = []

    async def body(model: ProviderModel, server: ModelServer) -> None:
        await collect(model.stream(request))
        bodies.append(server.received[0].body)

    with_server(answer, body)
    return bodies[0]


def finish_is_among(events: list[str]) -> bool:
    chunks = [json.loads(event) for event in events if event != "[DONE]"]
    return any(choice["finish_reason"] for chunk in chunks for choice in chunk["choices"])


# Answers
