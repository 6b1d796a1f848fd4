"""Which model a name means: the one place where names become models."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from pathlib import Path

from ai_whisperer.errors import DefinitionError, ModelNameError
from ai_whisperer.models.base import Model, ModelFactory, ModelRequest, StreamEvent

NameCheck = Callable[[str], None]
"""Raises `ModelNameError` for a name that means no model."""

AUTO = "auto"
"""The model that the environment offers, see `models.detection`."""
SCRIPTED = "scripted"
SCRIPTED_DEMO = "scripted:demo"
"""The scripted model with the rules that come with the package: it plays the workflows of the user guide."""
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


class ProviderModel:
    """A model of a provider. The provider library, which takes a second to load, is loaded beside the event loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: Model | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if self._model is None:
            library = await asyncio.to_thread(import_module, "ai_whisperer.models.pydantic_ai")
            self._model = library.PydanticAIModel(self.name)
        async for event in self._model.stream(request):
            yield event

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()


def resolve(name: str) -> Model:
    """Make the model of that name; raises `ModelNameError` for a name that means none.

    The forms are `auto`, `scripted`, `scripted:demo`, `scripted:PATH` and `PREFIX:NAME`. That a
    provider's package is missing, or the key, is told by the first request.
    """
    check_name(name)
    if name == AUTO:
        from ai_whisperer.models.detected import DetectedModel

        return DetectedModel()
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
    return ProviderModel(name)


def check_name(name: str) -> None:
    """Raise `ModelNameError` for a name that means no model, whatever is installed. Nothing is read or loaded."""
    prefix, _, rest = name.partition(":")
    if name not in (AUTO, SCRIPTED) and not (prefix in (SCRIPTED, *PREFIXES) and rest.strip()):
        raise _unknown(name)


def name_check(factory: ModelFactory) -> NameCheck | None:
    """What tells of a name whether the factory can make a model of it; None if only the factory knows."""
    return check_name if factory is resolve else None


def _unknown(name: str) -> ModelNameError:
    forms = "Use `PREFIX:NAME`, for instance `openai-chat:NAME`, or `scripted`, or `scripted:PATH`, or `auto`."
    near = difflib.get_close_matches(name.partition(":")[0].strip().lower(), [*PREFIXES, SCRIPTED], n=3)
    hint = f" Near known prefixes: {', '.join(near)}." if near else ""
    return ModelNameError(f"There is no model {name[:200]!r}. {forms}{hint} Prefixes: {', '.join(PREFIXES)}.")
