"""The model that a command uses: the one that was named, else what the environment offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ai_whisperer.errors import ModelNameError
from ai_whisperer.models.catalog import AUTO, SCRIPTED, SCRIPTED_DEMO, resolve
from ai_whisperer.models.detection import KEYS, OPENAI, PROVIDERS, detect_model
from ai_whisperer.settings import LoadedSettings


class ModelChoice(NamedTuple):
    """A model, why it is this one, and what kept others from being it."""

    model: str
    why: str
    problems: tuple[str, ...] = ()

    @property
    def for_workflows(self) -> str:
        """The model for the workflows of the guide: the scripted one needs its part in them."""
        return SCRIPTED_DEMO if self.model == SCRIPTED else self.model

    @property
    def told(self) -> str:
        """The choice in words, after the problems."""
        choice = f"The model is {self.model} ({self.why})."
        if self.model in (SCRIPTED, SCRIPTED_DEMO):
            choice = (
                f"The model is {self.model}, the built-in one with fixed answers ({self.why}). "
                "Set the key of a provider, or --model, for a real one."
            )
        return "\n".join([*self.problems, choice])


def choose_model(settings: LoadedSettings, environment: Mapping[str, str]) -> ModelChoice:
    """The model to use; it may ask servers which models they have, so it blocks.

    Raises `ModelNameError` if one was named that cannot be used here.
    """
    named = settings.values.model
    if named in (None, AUTO):
        found = detect_model(environment)
        return ModelChoice(found.model, found.why, tuple(found.problems))
    check_model(named, environment)
    return ModelChoice(named, settings.sources["model"])


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
    instead = ("OPENAI_BASE_URL",) if provider is OPENAI else ()
    keys = KEYS.get(provider, ())
    if keys and not any(environment.get(each, "").strip() for each in (*keys, *instead)):
        raise ModelNameError(
            f"The model '{name}' needs a key. Set {' or '.join(keys)}, or choose another model with --model."
        )
