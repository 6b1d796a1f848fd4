"""Which model a name means: the one place where names become models."""

from __future__ import annotations

import difflib
from pathlib import Path

from ai_whisperer.errors import ModelNameError
from ai_whisperer.models.base import Model

SCRIPTED = "scripted"

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
"""The providers of language models that are known by name here; the provider library may know more."""


def resolve(name: str) -> Model:
    """Make the model of that name; raises `ModelNameError` for a name that means none.

    The forms are `scripted`, `scripted:PATH` and `PREFIX:NAME`. The provider library is loaded only for the last.
    """
    prefix, _, rest = name.partition(":")
    if name == SCRIPTED or (prefix == SCRIPTED and rest):
        from ai_whisperer.models.scripted import ScriptedModel

        return ScriptedModel.from_file(Path(rest)) if rest else ScriptedModel()
    if not prefix or not rest:
        raise _unknown(name)
    from ai_whisperer.models.pydantic_ai import PydanticAIModel, knows_provider

    if not knows_provider(prefix):
        raise _unknown(name)
    return PydanticAIModel(name)


def _unknown(name: str) -> ModelNameError:
    forms = "Use `PREFIX:NAME`, for instance `openai-chat:NAME`, or `scripted`, or `scripted:PATH`."
    near = difflib.get_close_matches(name.partition(":")[0].lower(), [*PREFIXES, SCRIPTED], n=3)
    hint = f" Near known prefixes: {', '.join(near)}." if near else ""
    return ModelNameError(f"There is no model {name!r}. {forms}{hint}")
