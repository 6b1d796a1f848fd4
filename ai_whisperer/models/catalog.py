"""Which model a name means: the one place where names become models."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path

from ai_whisperer.errors import ModelNameError
from ai_whisperer.models.base import Model, ModelRequest, StreamEvent

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

    The forms are `scripted`, `scripted:demo`, `scripted:PATH` and `PREFIX:NAME`. That a provider's package is missing,
    or the key, is told by the first request.
    """
    prefix, _, rest = name.partition(":")
    if name == SCRIPTED or (prefix == SCRIPTED and rest):
        from ai_whisperer.models.scripted import ScriptedModel

        path = DEMO_RULES if name == SCRIPTED_DEMO else Path(rest)
        return ScriptedModel.from_file(path) if rest else ScriptedModel()
    if prefix not in PREFIXES or not rest:
        raise _unknown(name)
    return ProviderModel(name)


def _unknown(name: str) -> ModelNameError:
    forms = "Use `PREFIX:NAME`, for instance `openai-chat:NAME`, or `scripted`, or `scripted:PATH`."
    near = difflib.get_close_matches(name.partition(":")[0].lower(), [*PREFIXES, SCRIPTED], n=3)
    hint = f" Near known prefixes: {', '.join(near)}." if near else ""
    return ModelNameError(f"There is no model {name!r}. {forms}{hint}")
