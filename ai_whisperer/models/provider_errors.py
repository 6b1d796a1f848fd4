"""What a provider complains of through its library, in the words of our error tree."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping

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
from ai_whisperer.models import failures
from ai_whisperer.models.bounded_body import WireLimitError
from ai_whisperer.models.retry_after import retry_after_seconds

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What the library trips over when a provider sends JSON of the wrong shape."""
FAILURES = (library.AgentRunError, library.UserError, OSError, WireLimitError, *UNREADABLE)
"""Everything that a request may raise and that is for `translated`."""
_LOOKED_AT_CHARACTERS = 10_000


def translated(error: Exception, *, answering: bool, came: bool = False) -> ModelError:
    """The error as one of ours. `answering` says that the request was made, so that it is not to blame.

    `came` says that something of an answer came: a connection that breaks off before is that of a provider which is
    down behind something that still takes connections.
    """
    beyond = _beyond(error)
    if beyond is not None:
        return ModelServerError(f"The provider's answer cannot be used: {beyond}.")
    return _lasting(error) or _unavailable(error, came=came) or _translated(error, answering=answering)


def _lasting(error: Exception) -> ModelError | None:
    """The error as one that looks like an outage, but is not waited out: it is there until somebody mends it."""
    told = _told(error)
    if isinstance(error, library.ModelHTTPError):
        return failures.lasting_status(error.status_code, told)
    if _is_from(error, "UnsupportedProtocol"):
        return failures.wrong_address(told)
    if _is_from(error, "ProxyError") and told.startswith("407"):
        return failures.lasting_status(407, told)
    if _is_timeout(error) or not isinstance(error, library.ModelConnectionError | OSError):
        return None
    return failures.lasting_fault_of_system(_fault_of_system(error), told)


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
        case _ if _is_timeout(error) and not _is_from(error, "ConnectTimeout"):
            return None
        case library.ModelConnectionError() if _broke_off(error):
            if came or not _is_from(error, "ReadError"):
                return None
            return ModelUnavailableError(f"The provider took the request and hung up: {told}")
        case library.ModelConnectionError() if _is_nonsense(error):
            return None
        case library.ModelConnectionError() | OSError():
            return failures.unreachable(_fault_of_system(error), told)
    return None


def _translated(error: Exception, *, answering: bool) -> ModelError:
    told = _told(error)
    match error:
        case library.ModelQuotaExceededError():
            return ModelRefusedError(f"The provider's quota is used up: {told} Top up the account or change the model.")
        case library.ModelContextWindowExceededError():
            return failures.too_long(told)
        case library.ModelHTTPError():
            return failures.of_status(error.status_code, told, retry_after_seconds=_retry_after_seconds(error))
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


def _retry_after_seconds(error: library.ModelHTTPError) -> float | None:
    asked = retry_after_seconds(error.headers or {}, now=time.time())
    return error.retry_after if asked is None else asked


def _beyond(error: BaseException) -> WireLimitError | None:
    """The limit of what can be an answer that ended it, if there is one behind the error."""
    return next((cause for cause in _causes(error) if isinstance(cause, WireLimitError)), None)


def _fault_of_system(error: BaseException) -> OSError | None:
    """What the operating system or TLS complains of behind the error, with its number; client libraries wrap it."""
    fault: BaseException | None = error
    while fault is not None and not (isinstance(fault, OSError) and fault.errno is not None):
        fault = fault.__cause__ or fault.__context__
    return fault


def _is_timeout(error: Exception) -> bool:
    return isinstance(error, library.ModelTimeoutError | TimeoutError)


def _broke_off(error: BaseException) -> bool:
    """Whether the peer went away in the middle, as against never having been there or talking nonsense."""
    return _is_from(error, "ReadError", saying="peer closed connection")


def _is_nonsense(error: BaseException) -> bool:
    """Whether the peer is there and speaks no proper HTTP, as against hanging up without a word."""
    silent = _is_from(error, "", saying="disconnected without sending a response")
    return _is_from(error, "RemoteProtocolError") and not silent


def _is_from(error: BaseException, name: str, *, saying: str | None = None) -> bool:
    """Whether an error of that name, or one that says this, is behind the error. HTTP clients have classes each."""
    return any(
        type(cause).__name__ == name or (saying is not None and saying in str(cause)) for cause in _causes(error)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what is behind it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


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
    return failures.told(text)
