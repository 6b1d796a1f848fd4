"""Which of the models of an agent a request goes to, and when it goes on to the next one.

An agent may name several models, the one that it wants first. Each request begins with the first that can answer now:
so when that one is back, it is asked again. `runtime/agents/model_turn` does what is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from ai_whisperer.core.provider_gate import LASTING_SECONDS
from ai_whisperer.errors import (
    AnswerSizeError,
    AnswerTimeError,
    ModelError,
    ModelNameError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelTooLongError,
    ModelUnavailableError,
)

BARRED_SECONDS = 300.0
"""A model that refuses an agent, for want of a key say, is passed over by it for so long."""
_MOST_OUTAGES = 2
_MOST_REFUSALS = 3
"""After so many failures of a kind at one model, a request goes on to the next."""


def bars(error: ModelError) -> bool:
    """Whether the model would refuse the next request too: its name, its key or the account is wrong.

    That a conversation is too long is a matter of that conversation.
    """
    return isinstance(error, ModelNameError | ModelRefusedError) and not isinstance(error, ModelTooLongError)


def waits_for_any(wait_seconds: float, lasting_seconds: float) -> float:
    """How long a request waits that no model answers now: it need not be for the one that it was made to.

    The one that can be asked first lets nobody in for `lasting_seconds`.
    """
    return min(wait_seconds, max(lasting_seconds, LASTING_SECONDS))


class Attempts:
    """What became of one request so far, at each of the models that it went to."""

    __slots__ = ("_failures", "_passed_over")

    def __init__(self) -> None:
        self._passed_over: set[str] = set()
        self._failures: Counter[tuple[str, type[ModelError]]] = Counter()

    def choose(self, names: Sequence[str], *, barred: Collection[str], lasting: Callable[[str], float]) -> str:
        """The first that can be asked now, rather one that was not tried; else the one that can be asked first.

        `lasting` says for how many seconds the account of a model lets nobody in, 0 if that is not worth a change.
        """
        usable = [name for name in names if name not in barred] or list(names)
        fresh = [name for name in usable if name not in self._passed_over] or usable
        return min((*fresh, *usable), key=lasting)

    def goes_on(
        self,
        name: str,
        error: ModelError,
        *,
        names: Sequence[str],
        barred: Collection[str],
        wait_seconds: float | None,
        is_down: bool,
    ) -> bool:
        """Whether the request that failed so goes on to another model at once.

        `wait_seconds` is how long it would wait otherwise, None if it would fail; `is_down` says that nobody can ask
        the model. When all of them were tried it waits, and begins with the first again.
        """
        if not self._is_done_with(name, error, wait_seconds, is_down=is_down):
            return False
        self._passed_over.add(name)
        others = [each for each in names if each not in barred and each != name]
        if any(each not in self._passed_over for each in others):
            return True
        self._passed_over.clear()
        self._failures.clear()
        # One that refuses does so again, others may be back.
        return bool(others) and wait_seconds is None and bars(error)

    def _is_done_with(self, name: str, error: ModelError, wait_seconds: float | None, *, is_down: bool) -> bool:
        if isinstance(error, AnswerSizeError | AnswerTimeError):
            return False  # the limits are the agent's own
        kind = ModelUnavailableError if isinstance(error, ModelUnavailableError) else type(error)
        self._failures[name, kind] += 1
        failures = self._failures[name, kind]
        if wait_seconds is None:
            return True
        if isinstance(error, ModelUnavailableError):
            return is_down or failures >= _MOST_OUTAGES
        if isinstance(error, ModelRateLimitError):
            return wait_seconds > LASTING_SECONDS or failures >= _MOST_REFUSALS
        return False
