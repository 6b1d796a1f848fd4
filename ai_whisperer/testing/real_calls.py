"""Real models and tools for a team in virtual time: they run on a real event loop, while virtual time stands still."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import Model, ModelFactory, ModelRequest, collect
from ai_whisperer.models.catalog import resolve

if TYPE_CHECKING:
    from ai_whisperer.scripting.background import BackgroundLoop

_T = TypeVar("_T")


class RealCalls:
    """Begins a thread with an event loop when something is first called."""

    def __init__(self, models: ModelFactory = resolve) -> None:
        self._factory = models
        self._models: dict[str, Model] = {}
        self._background: BackgroundLoop | None = None

    def answer(self, name: str, request: ModelRequest) -> Answer:
        """What the model of that name answers; raises a `ModelError`."""
        if name not in self._models:
            self._models[name] = self._factory(name)
        return self.run(collect(self._models[name].stream(request)))

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of what needs a real event loop."""
        if self._background is None:
            from ai_whisperer.scripting.background import BackgroundLoop

            self._background = BackgroundLoop()
        return self._background.run(work)

    def close(self) -> None:
        if self._background is None:
            return
        try:
            for model in self._models.values():
                self._background.run(model.close())
        finally:
            self._background.close()
            self._background = None
