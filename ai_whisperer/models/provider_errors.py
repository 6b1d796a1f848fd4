"""What a provider or its library complains of, in the words of our error tree and without any secret."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from pydantic_ai import exceptions as library

from ai_whisperer.errors import (
    ModelCutOffError,
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from ai_whisperer.models.bounded_http import WireLimitError
from ai_whisperer.models.retry_after import retry_after_seconds
from ai_whisperer.secrets import redacted

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What the library trips over when a provider sends JSON of the wrong shape."""
FAILURES = (library.AgentRunError, library.UserError, OSError, WireLimitError, *UNREADABLE)
"""Everything that a request may raise and that is for `translated`."""


_LOOKED_AT_CHARACTERS = 10_000
"""Of what a provider says so much is searched for secrets; less is shown."""


def translated(error: Exception, *, answering: bool, came: bool = False) -> ModelError:
    """The error as one of ours. `answering` says that the request was made, so that it is not to blame.

    `came` says that something of an answer came: a connection that breaks off before is that of a provider which is
    down behind something that still takes connections.
    """
    beyond = _beyond(error)
    if beyond is not None:
        return ModelServerError(f"The provider's answer cannot be used: {beyond}.")
    return _unavailable(error, came=came) or _translated(error, answering=answering)


def _unavailable(error: Exception, *, came: bool) -> ModelError | None:
    """The error as an outage, if it is one: the provider is down, overloaded, or cannot be reached."""
    told = _told(error)
    match error:
        case library.ModelHTTPError() if error.status_code >= 500:
            wait = _retry_after_seconds(error)
            return ModelUnavailableError(
                f"The provider failed (status {error.status_code}): {told}", retry_after_seconds=wait
            )
        case library.ModelUnavailableError():
            return ModelUnavailableError(f"The provider is not available: {told}")
        case library.ModelTimeoutError() | TimeoutError() if not _is_from(error, "ConnectTimeout"):
            return None
        case library.ModelConnectionError() if _broke_off(error):
            if came or not _is_from(error, "ReadError"):
                return None
            return ModelUnavailableError(f"The provider took the request and hung up: {told}")
        case library.ModelConnectionError() if _is_nonsense(error):
            return None
        case library.ModelConnectionError() | OSError():
            return ModelUnavailableError(
                f"The provider could not be reached: {told} Check its address and that it runs."
            )
    return None


def _translated(error: Exception, *, answering: bool) -> ModelError:
    told = _told(error)
    match error:
        case library.ModelQuotaExceededError():
            return ModelRefusedError(f"The provider's quota is used up: {told} Top up the account or change the model.")
        case library.ModelContextWindowExceededError():
            return ModelRefusedError(
                f"The conversation is too long for the model: {told} Shorten it or split the task."
            )
        case library.ModelHTTPError():
            return _status_error(error, told)
        case library.ModelRateLimitError():
            return ModelRateLimitError(told, retry_after_seconds=error.retry_after)
        case library.ModelTimeoutError() | library.ModelRequestTimeout() | TimeoutError():
            return ModelTimeoutError(f"The provider did not answer in time: {told}")
        case library.ModelConnectionError() if _broke_off(error):
            return ModelCutOffError(f"The connection broke off before the answer was complete: {told}")
        case library.AgentRunError():
            return ModelServerError(f"The provider's answer cannot be used: {told}")
    if answering and isinstance(error, UNREADABLE):
        return ModelServerError(f"The provider's answer cannot be read: {told}")
    return ModelRefusedError(f"The request could not be made: {told}")


def _status_error(error: library.ModelHTTPError, told: str) -> ModelError:
    status, wait = error.status_code, _retry_after_seconds(error)
    if status == 429:
        return ModelRateLimitError(f"The provider asks for fewer requests: {told}", retry_after_seconds=wait)
    if status == 408:
        return ModelTimeoutError(f"The provider timed out: {told}", retry_after_seconds=wait)
    if status == 409:
        return ModelServerError(f"The provider failed (status {status}): {told}", retry_after_seconds=wait)
    if status in (401, 403):
        return ModelRefusedError(f"The provider refused the key (status {status}): {told} Check the key.")
    if status == 404:
        return ModelRefusedError(f"The provider does not know the model: {told} Check its name and the address.")
    return ModelRefusedError(f"The provider refused the request (status {status}): {told} Correct it or the settings.")


def _retry_after_seconds(error: library.ModelHTTPError) -> float | None:
    asked = retry_after_seconds(error.headers or {}, now=time.time())
    return error.retry_after if asked is None else asked


def _beyond(error: BaseException) -> WireLimitError | None:
    """The limit of what can be an answer that ended it, if there is one behind the error."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, WireLimitError):
        cause = cause.__cause__
    return cause


def _broke_off(error: BaseException) -> bool:
    """Whether the peer went away in the middle, as against never having been there or talking nonsense."""
    return _is_from(error, "ReadError", saying="peer closed connection")


def _is_nonsense(error: BaseException) -> bool:
    """Whether the peer is there and speaks no proper HTTP, as against hanging up without a word."""
    silent = _is_from(error, "", saying="disconnected without sending a response")
    return _is_from(error, "RemoteProtocolError") and not silent


def _is_from(error: BaseException, name: str, *, saying: str | None = None) -> bool:
    """Whether an error of that name, or one that says this, is behind the error. HTTP clients have classes each."""
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ == name or (saying is not None and saying in str(cause)):
            return True
        cause = cause.__cause__
    return False


def _told(error: Exception) -> str:
    """What the provider or the library said, as a sentence without any secret."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        body = inner.get("message") if isinstance(inner, Mapping) else inner
    root: BaseException = error
    while isinstance(error, library.ModelConnectionError) and root.__cause__ is not None:
        root = root.__cause__
    text = (str(body or "") or str(root) or type(root).__name__)[:_LOOKED_AT_CHARACTERS]
    # The library's advice names its own classes, which the reader does not have before them.
    text = re.sub(r" or pass it via `[^`]*`|\s*To try Pydantic AI .*", "", text, flags=re.DOTALL)
    text = " ".join(redacted(text)[:500].split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
