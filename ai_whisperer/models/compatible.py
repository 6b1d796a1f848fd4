"""The providers whose interface is the chat completions of OpenAI, and in what they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.local_servers import LOCAL_SERVERS, local_address, ollama_url


class Compatible(NamedTuple):
    """A provider: where it is, and which variables name its key and its address."""

    url: str = ""
    """Empty if it has none of its own: then the environment names one."""
    keys: tuple[str, ...] = ()
    url_variables: tuple[str, ...] = ()
    needs_key: bool = True
    priced_as: str = ""
    """The provider's name in the price list, if it is not the prefix."""
    max_tokens: str = "max_completion_tokens"
    """The field for the longest answer."""
    wants_reasoning: bool = False
    """Whether a call without the reasoning before it is refused, once there was any."""
    path: str = ""
    """What comes after the address that the variable names."""


COMPATIBLE: Mapping[str, Compatible] = {
    "alibaba": Compatible(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ("ALIBABA_API_KEY", "DASHSCOPE_API_KEY")
    ),
    "deepseek": Compatible(
        "https://api.deepseek.com", ("DEEPSEEK_API_KEY",), max_tokens="max_tokens", wants_reasoning=True
    ),
    "fireworks": Compatible("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "github": Compatible("https://models.github.ai/inference", ("GITHUB_API_KEY",)),
    "groq": Compatible("https://api.groq.com", ("GROQ_API_KEY",), ("GROQ_BASE_URL",), path="/openai/v1"),
    "heroku": Compatible(
        "https://us.inference.heroku.com", ("HEROKU_INFERENCE_KEY",), ("HEROKU_INFERENCE_URL",), path="/v1"
    ),
    "litellm": Compatible(
        keys=("LITELLM_API_KEY", "OPENAI_API_KEY"),
        url_variables=("LITELLM_BASE_URL", "OPENAI_BASE_URL"),
        needs_key=False,
    ),
    "moonshotai": Compatible(
        "https://api.moonshot.ai/v1", ("MOONSHOTAI_API_KEY",), ("MOONSHOTAI_BASE_URL",), wants_reasoning=True
    ),
    "nebius": Compatible("https://api.studio.nebius.com/v1", ("NEBIUS_API_KEY",)),
    "ollama": Compatible(keys=("OLLAMA_API_KEY",), needs_key=False, max_tokens="max_tokens"),
    "openai-chat": Compatible(
        "https://api.openai.com/v1", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",), priced_as="openai"
    ),
    "openrouter": Compatible("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), max_tokens="max_tokens"),
    "ovhcloud": Compatible("https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", ("OVHCLOUD_API_KEY",)),
    "sambanova": Compatible("https://api.sambanova.ai/v1", ("SAMBANOVA_API_KEY",), ("SAMBANOVA_BASE_URL",)),
    "together": Compatible("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "vercel": Compatible("https://ai-gateway.vercel.sh/v1", ("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN")),
    **dict.fromkeys(LOCAL_SERVERS, Compatible(needs_key=False, max_tokens="max_tokens")),
}
"""By their prefixes. Those that speak another protocol or want another kind of key are left to the provider library."""


def provider_address(prefix: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The address of a provider and the key for it; raises `ModelRefusedError` that says what to set.

    A server that the environment names needs no key.
    """
    if prefix in LOCAL_SERVERS:
        return local_address(prefix, environment)
    provider = COMPATIBLE[prefix]
    named = _first(provider.url_variables, environment)
    url = ollama_url(environment) if prefix == "ollama" else named or provider.url
    if not url:
        raise ModelRefusedError(
            f"The request could not be made: Set the `{provider.url_variables[0]}` environment variable to the address "
            "of the server."
        )
    if provider.path and not url.rstrip("/").endswith(provider.path):
        url = url.rstrip("/") + provider.path
    key = _first(provider.keys, environment)
    if not key and provider.needs_key and not named:
        names = " or ".join(f"`{name}`" for name in provider.keys)
        raise ModelRefusedError(f"The request could not be made: Set the {names} environment variable.")
    return url, key


def _first(variables: tuple[str, ...], environment: Mapping[str, str]) -> str:
    return next((value for name in variables if (value := environment.get(name, "").strip())), "")
