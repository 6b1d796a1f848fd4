"""The model `auto`: the one that the environment offers, found out when it is first asked for something."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from threading import Lock

from ai_whisperer.models.base import Model, ModelRequest, StreamEvent
from ai_whisperer.models.catalog import AUTO, SCRIPTED, resolve
from ai_whisperer.models.detection import KEYS, SERVERS, Detection, detect_model

NAMED_BY = "WHISPERER_MODEL"
"""The variable that names the model for a server, and for a program that names none."""

_log = logging.getLogger(__name__)
_finding = Lock()
_found: dict[tuple[tuple[str, int], ...], Detection] = {}


class DetectedModel:
    """Answers with the model that `whisperer serve` would use; which one that is, the log says once in a process."""

    def __init__(self) -> None:
        self._model: Model | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if self._model is None:
            found = await asyncio.to_thread(found_model, os.environ)
            self._model = self._model or resolve(found.model)
        async for event in self._model.stream(request):
            yield event

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()


def found_model(environment: Mapping[str, str]) -> Detection:
    """The model that is named or offered there; servers are asked once, so this blocks. Raises `ModelNameError`."""
    variables = [name for names in (*KEYS.values(), *SERVERS.values()) for name in names]
    key = tuple((name, hash(environment.get(name, "").strip())) for name in (NAMED_BY, *variables))
    with _finding:
        if key not in _found:
            _found[key] = found = _look(environment)
            _log.warning("%s", told(found))  # the level that shows without a set-up: it may cost money, or be no model
        return _found[key]


def _look(environment: Mapping[str, str]) -> Detection:
    named = environment.get(NAMED_BY, "").strip()
    return detect_model(environment) if named in ("", AUTO) else Detection(model=named, why=f"{NAMED_BY} is set")


def told(found: Detection) -> str:
    """Which model answers, and why, after what kept others from it."""
    choice = f"The model is {found.model} ({found.why}). Name another with model=."
    if found.model.partition(":")[0] == SCRIPTED:
        choice = (
            f"The model is {found.model}, the built-in one that plays fixed answers ({found.why}). Set the key of a "
            "provider, or name a model with model=, for a real one."
        )
    return " ".join([*found.problems, choice])
