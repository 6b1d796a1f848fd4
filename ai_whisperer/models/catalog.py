"""Which model a name means: the one place where names become models."""

from __future__ import annotations

import asyncio
import difflib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ai_whisperer.core.anthropic_access import KEY as ANTHROPIC_KEY
from ai_whisperer.core.anthropic_access import anthropic_access
from ai_whisperer.domain.definition import CLIENT, LIBRARY_CLIENT
from ai_whisperer.domain.providers import Account
from ai_whisperer.errors import DefinitionError, ModelNameError, ModelRefusedError
from ai_whisperer.models.base import Model, ModelFactory, ModelRequest, StreamEvent
from ai_whisperer.models.compatible import COMPATIBLE, provider_address
from ai_whisperer.models.local_servers import LOCAL_SERVERS
from ai_whisperer.models.names import ANTHROPIC_PREFIX, AUTO, SCRIPTED, SCRIPTED_DEMO

if TYPE_CHECKING:
    from ai_whisperer.models.own_client import OwnClientModel

NameCheck = Callable[[str], None]
"""Raises `ModelNameError` for a name that means no model."""

DEMO_RULES = Path(__file__).parent / "demo_rules.yaml"

PREFIXES = (
    "alibaba",
    "anthropic",
    "azure",
    "azure-responses",
    "bedrock",
    "bedrock-mantle",
    "cerebras",
    "cohere",
    "crusoe",
    "deepseek",
    "fireworks",
    "github",
    "github-copilot",
    "google",
    "google-cloud",
    "groq",
    "heroku",
    "huggingface",
    "litellm",
    "meta",
    "mistral",
    "moonshotai",
    "nebius",
    "ollama",
    "openai",
    "openai-chat",
    "openai-chatgpt",
    "openai-codex",
    "openai-responses",
    "openrouter",
    "ovhcloud",
    "sambanova",
    "snowflake",
    "together",
    "vercel",
    "vllm",
    "xai",
    "zai",
)
"""The providers of language models, as the provider library names them."""
_KNOWN = tuple(sorted({*PREFIXES, *LOCAL_SERVERS}))


class LateModel:
    """A model that is made when it is first wanted, since that takes a while: beside the event loop."""

    def __init__(self, make: Callable[[], Awaitable[Model]]) -> None:
        self._make = make
        self._model: Model | None = None

    async def made(self) -> Model:
        """The model itself; raises what keeps it from being made."""
        if self._model is None:
            model = await self._make()
            self._model = self._model or model  # another request may have made it meanwhile
        return self._model

    async def prepare(self) -> None:
        """Make the model, so that its prices are known. What keeps it from that is told by the request itself."""
        with suppress(Exception):
            await self.made()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        # All that are made here stream with a generator: one that is not read to its end closes its connection at once.
        events = cast(AsyncGenerator[StreamEvent, None], (await self.made()).stream(request))
        async with aclosing(events):
            async for event in events:
                yield event

    @property
    def account(self) -> Account | None:
        """Through which account it asks; None if the model is not made yet, or has none."""
        return getattr(self._model, "account", None)

    async def find_account(self) -> Account | None:
        """Make the model, so that its account is known. What keeps it from that is told by the request itself."""
        await self.prepare()
        return self.account

    def price_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """What a request of that size costs; None if the model is not made yet, or does not know."""
        listed = getattr(self._model, "price_usd", None)
        return None if listed is None else listed(input_tokens, output_tokens)

    def context_window(self) -> int | None:
        """How many tokens it can take with its answer; None if the model is not made yet, or does not know."""
        known = getattr(self._model, "context_window", None)
        return None if known is None else known()

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()


class OwnOrLibrary:
    """A model that our own client asks; with `client: pydantic-ai` in the settings of an agent the library does."""

    def __init__(self, own: OwnClientModel) -> None:
        self.own = own
        self.library = LateModel(partial(_library_model, own.name))

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        return (self.library if request.settings.get(CLIENT) == LIBRARY_CLIENT else self.own).stream(request)

    @property
    def account(self) -> Account | None:
        """Through which account it asks, whoever does."""
        return self.own.account

    async def prepare(self) -> None:
        """Read the prices."""
        await self.own.prepare()

    def price_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """What a request of that size costs; None if that is not known, or not yet."""
        return self.own.price_usd(input_tokens, output_tokens)

    def context_window(self) -> int | None:
        """How many tokens it can take with its answer; None if that is not known, or not yet."""
        return self.own.context_window()

    async def close(self) -> None:
        await self.own.close()
        await self.library.close()


def resolve(name: str) -> Model:
    """Make the model of that name; raises `ModelNameError` for a name that means none.

    The forms are `auto`, `scripted`, `scripted:demo`, `scripted:PATH` and `PREFIX:NAME`. That a
    provider's package is missing, or the key, is told by the first request.
    """
    check_name(name)
    if name == AUTO:
        return LateModel(_detected_model)
    prefix, _, rest = name.partition(":")
    if prefix == SCRIPTED:
        from ai_whisperer.models.scripted import ScriptedModel

        path = DEMO_RULES if name == SCRIPTED_DEMO else Path(rest)
        try:
            return ScriptedModel.from_file(path) if rest else ScriptedModel()
        except DefinitionError as error:
            raise ModelNameError(
                f"The model {name!r} cannot be used: {error.message.rstrip('.')}. Correct the file."
            ) from error
    if prefix in COMPATIBLE:
        from ai_whisperer.models.openai_chat import OpenAIChatModel

        return OwnOrLibrary(OpenAIChatModel(name))
    if prefix == ANTHROPIC_PREFIX:
        from ai_whisperer.models.anthropic_messages import AnthropicModel

        return OwnOrLibrary(AnthropicModel(name))
    return LateModel(partial(_library_model, name))


def check_name(name: str) -> None:
    """Raise `ModelNameError` for a name that means no model, whatever is installed. Nothing is read or loaded."""
    prefix, _, rest = name.partition(":")
    if name not in (AUTO, SCRIPTED) and not (prefix in (SCRIPTED, *_KNOWN) and rest.strip()):
        raise _unknown(name)


def out_of_reach(name: str, environment: Mapping[str, str]) -> str | None:
    """What is missing for the model to be asked, with what to do; None if nothing is, as far as is known beforehand."""
    prefix = name.partition(":")[0]
    if prefix in COMPATIBLE:
        try:
            provider_address(prefix, environment)
        except ModelRefusedError as error:
            return error.message
    if prefix == ANTHROPIC_PREFIX and anthropic_access(environment) is None:
        return f"The request could not be made: Set the `{ANTHROPIC_KEY}` environment variable."
    return None


def name_check(factory: ModelFactory) -> NameCheck | None:
    """What tells of a name whether the factory can make a model of it; None if only the factory knows."""
    return check_name if factory is resolve else None


async def _detected_model() -> Model:
    from ai_whisperer.models.detection import found_model

    model = resolve((await asyncio.to_thread(found_model, os.environ)).model)
    return await model.made() if isinstance(model, LateModel) else model


async def _library_model(name: str) -> Model:
    library: Any = await asyncio.to_thread(import_module, "ai_whisperer.models.pydantic_ai")
    model: Model = library.PydanticAIModel(name)
    return model


def _unknown(name: str) -> ModelNameError:
    forms = "Use `PREFIX:NAME`, for instance `openai-chat:NAME`, or `scripted`, or `scripted:PATH`, or `auto`."
    near = difflib.get_close_matches(name.partition(":")[0].strip().lower(), [*_KNOWN, SCRIPTED], n=3)
    hint = f" Near known prefixes: {', '.join(near)}." if near else ""
    return ModelNameError(f"There is no model {name[:200]!r}. {forms}{hint} Prefixes: {', '.join(_KNOWN)}.")
