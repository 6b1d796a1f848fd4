"""The model that a command uses: the one that was named, else what the environment offers."""

from __future__ import annotations

from collections.abc import Mapping

from ai_whisperer.errors import ModelNameError
from ai_whisperer.models.catalog import resolve
from ai_whisperer.models.detection import ANTHROPIC, KEYS, OPENAI, PROVIDERS, SERVERS, Detection, detect_model
from ai_whisperer.models.names import AUTO, SCRIPTED, SCRIPTED_DEMO
from ai_whisperer.settings import LoadedSettings


def choose_model(settings: LoadedSettings, environment: Mapping[str, str]) -> Detection:
    """The model to use; it may ask servers which models they have, so it blocks.

    Raises `ModelNameError` if one was named that cannot be used here.
    """
    named = settings.values.model
    if named in (None, AUTO):
        return detect_model(environment)
    check_model(named, environment)
    return Detection(model=named, why=settings.sources["model"])


def check_usable(choice: Detection) -> None:
    """Raise `ModelNameError` if nothing that the environment names can be used: fixed answers were not meant."""
    if choice.model in (SCRIPTED, SCRIPTED_DEMO) and choice.problems:
        raise ModelNameError(
            f"{' '.join(choice.problems)} Correct that, or choose a model with --model; `--model scripted` is the "
            "built-in one with fixed answers."
        )


def for_workflows(choice: Detection) -> str:
    """The model for the workflows of the guide: the scripted one needs its part in them."""
    return SCRIPTED_DEMO if choice.model == SCRIPTED else choice.model


def check_model(name: str, environment: Mapping[str, str]) -> None:
    """Raise `ModelNameError` if the name means no model, or one whose package or whose key is missing.

    Of providers that are not looked for by themselves only the name is checked: their first request tells the rest.
    """
    resolve(name)
    prefix = name.partition(":")[0]
    provider = next((each for each in PROVIDERS if each.prefix == prefix), None)
    if prefix in ("openai", "openai-responses"):
        provider = OPENAI
    if provider is None:
        return
    if not provider.is_installed:
        raise ModelNameError(f"The model '{name}' needs a package that is not installed: {provider.install}")
    instead = SERVERS[provider] if provider in (OPENAI, ANTHROPIC) else ()
    keys = KEYS.get(provider, ())
    if keys and not any(environment.get(each, "").strip() for each in (*keys, *instead)):
        raise ModelNameError(
            f"The model '{name}' needs a key. Set {' or '.join(keys)}, or choose another model with --model."
        )
