"""What goes wrong with providers, in the words of our error tree and without any secret, whoever asked them."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Mapping

from ai_whisperer.errors import (
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelTimeoutError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.secrets import redacted

_OF_CONNECTIONS = frozenset(
    {
        errno.EADDRNOTAVAIL,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.ESHUTDOWN,
        errno.ETIMEDOUT,
    }
)
"""With these the operating system says that somebody is not there, or is there no longer."""
_OF_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""With these it says that this computer has no more of something, which may pass soon."""
_FOR_GOOD = frozenset({501, 505})
"""The statuses above 500 with which a server says that it never does such a thing."""
_UNKNOWN_NAME_SECONDS = 120.0
"""A name that does not exist is mostly misspelled; but there are name servers that say so while they are in trouble."""
_LOOKED_AT_CHARACTERS = 10_000
"""Of what a provider says so much is searched for secrets; less is shown."""

_QUOTA = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
    }
)
"""The codes of providers for an account that is used up, though they may come with the status of too many requests."""
_STATUSES = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "api_error": 500,
    "server_error": 500,
    "overloaded": 503,
    "server_is_overloaded": 503,
    "service_unavailable": 503,
    "service_unavailable_error": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
    **dict.fromkeys(_QUOTA, 429),
}
"""What providers call their errors where they come without a status: inside a stream."""

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_OVERFLOW = re.compile(
    r"maximum context length|prompt is too long|input is too long|reduce the length of the messages"
    r"|input token count.{0,60}exceeds|exceeds the maximum number of tokens|input tokens exceed"
    r"|exceeds the available context size|longer than the (maximum )?(context|model)",
    re.IGNORECASE,
)
_CONTEXT = re.compile(r"context[ _-]?(size|length|window)", re.IGNORECASE)
_TOO_LONG = re.compile(r"exceed|too (long|large|many)|larger than|longer than|maximum|overflow", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"(does|do) not support (tools|tool use|tool call|function call)|tool use is not supported", re.I
)


def of_status(
    status: int, said: str, *, codes: tuple[str, ...] = (), retry_after_seconds: float | None = None
) -> ModelError:
    """The error of a response with that status. `codes` are the provider's own words for what is wrong."""
    lasting = lasting_status(status, said)
    if lasting is not None:
        return lasting
    if status == 402 or not _QUOTA.isdisjoint(codes) or "credit balance is too low" in said:
        return ModelRefusedError(f"The provider's quota is used up: {said} Top up the account or change the model.")
    if is_overflow(said, codes):
        return too_long(said)
    if status >= 500:
        return ModelUnavailableError(
            f"The provider failed (status {status}): {said}", retry_after_seconds=retry_after_seconds
        )
    return _of_request(status, said, retry_after_seconds)


def of_report(said: str, codes: tuple[str, ...]) -> ModelError:
    """The error that a provider reports inside its answer, without a status."""
    for code in codes:
        status = int(code) if code.isascii() and code.isdigit() and len(code) == 3 else _STATUSES.get(code, 0)
        if status >= 400:
            return of_status(status, said, codes=codes)
    if is_overflow(said, codes):
        return too_long(said)
    return ModelServerError(f"The provider's answer cannot be used: {said}")


def _of_request(status: int, said: str, wait: float | None) -> ModelError:
    if status == 429:
        return ModelRateLimitError(f"The provider asks for fewer requests: {said}", retry_after_seconds=wait)
    if status == 408:
        return ModelTimeoutError(f"The provider timed out: {said}", retry_after_seconds=wait)
    if status == 409:
        return ModelServerError(f"The provider failed (status {status}): {said}", retry_after_seconds=wait)
    if status in (401, 403):
        return ModelRefusedError(f"The provider refused the key (status {status}): {said} Check the key.")
    if status == 404:
        return ModelRefusedError(f"The provider does not know the model: {said} Check its name and the address.")
    if _NO_TOOLS.search(said):
        return ModelRefusedError(
            f"The model cannot use tools: {said} Choose one that can, or grant the agent no tools (tools: [])."
        )
    return ModelRefusedError(f"The provider refused the request (status {status}): {said} Correct it or the settings.")


def lasting_status(status: int, said: str) -> ModelError | None:
    """The error of a status that looks like an outage, but is not waited out."""
    if status == 407:
        return ModelRefusedError(
            f"The proxy wants a name and a password: {said} Correct them in its address (HTTPS_PROXY, HTTP_PROXY)."
        )
    if status in _FOR_GOOD:
        return ModelRefusedError(f"The provider cannot do that (status {status}): {said} Check its address.")
    if status >= 500 and is_overflow(said):
        return too_long(said)
    return None


def lasting_fault_of_system(fault: OSError | None, said: str) -> ModelError | None:
    """The error of a fault that is there until somebody mends it, or that is this computer's own."""
    match fault:
        case None | ssl.SSLEOFError() | ssl.SSLZeroReturnError() | ssl.SSLSyscallError() | socket.gaierror():
            return None
        case ssl.SSLCertVerificationError():
            return ModelRefusedError(
                f"The provider's certificate is not trusted: {said} Check its address, or trust the certificate "
                "(SSL_CERT_FILE)."
            )
        case ssl.SSLError():
            return ModelServerError(
                f"No secure connection to the provider could be made: {said} Check its address, and whether it begins "
                "with http:// or https://."
            )
    if fault.errno in _OF_SHORTAGES:
        return ModelServerError(f"This computer has not enough left for a request: {said}")
    if fault.errno not in _OF_CONNECTIONS:
        return ModelRefusedError(f"The request could not be made: {said} Correct the settings.")
    return None


def unreachable(fault: OSError | None, said: str) -> ModelUnavailableError:
    """The outage of a provider to which there is no connection."""
    if not isinstance(fault, socket.gaierror):
        return ModelUnavailableError(f"The provider could not be reached: {said} Check its address and that it runs.")
    return ModelUnavailableError(
        f"The provider could not be reached: its host name cannot be resolved: {said} Check its address.",
        longest_outage_seconds=None if fault.errno == socket.EAI_AGAIN else _UNKNOWN_NAME_SECONDS,
    )


def wrong_address(said: str) -> ModelRefusedError:
    return ModelRefusedError(
        f"The provider's address cannot be used: {said} Correct it: it begins with http:// or https://."
    )


def is_overflow(said: str, codes: tuple[str, ...] = ()) -> bool:
    """Whether the provider says that the conversation does not fit into the model's context."""
    if not _OVERFLOW_CODES.isdisjoint(codes) or _OVERFLOW.search(said):
        return True
    return _CONTEXT.search(said) is not None and _TOO_LONG.search(said) is not None


def too_long(said: str) -> ModelTooLongError:
    return ModelTooLongError(f"The conversation is too long for the model: {said} Shorten it or split the task.")


def told(text: str) -> str:
    """What somebody said, as a sentence without any secret."""
    text = " ".join(redacted(text[:_LOOKED_AT_CHARACTERS])[:500].split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def report_of(body: object) -> tuple[str, tuple[str, ...]]:
    """What the body of an error says, and the provider's words for it; both are empty if it says nothing."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(inner, Mapping):
        return ("" if inner is None else str(inner)[:_LOOKED_AT_CHARACTERS]), ()
    said = inner.get("message") or inner.get("detail") or ""
    codes = tuple(str(inner[name])[:100] for name in ("code", "type", "status") if inner.get(name))
    return str(said)[:_LOOKED_AT_CHARACTERS], codes
