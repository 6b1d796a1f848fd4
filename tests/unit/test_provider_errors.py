"""What is waited for as an outage, and what is not since waiting would not help."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest
from pydantic_ai import exceptions as library

from ai_whisperer.errors import (
    ModelError,
    ModelRefusedError,
    ModelServerError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.models.provider_errors import translated


class ConnectError(Exception):
    """As the HTTP clients call it."""


class UnsupportedProtocol(Exception):  # noqa: N818 - as the HTTP clients call it
    """As the HTTP clients call it."""


class ProxyError(Exception):
    """As the HTTP clients call it."""


def behind_connection(cause: Exception) -> Exception:
    """What the library raises for it: some client chain the cause, others leave it as the context."""
    inner = ConnectError(str(cause))
    inner.__context__ = cause
    return from_client(inner)


def from_client(cause: Exception) -> Exception:
    error = library.ModelConnectionError("m", "Connection error.")
    error.__cause__ = cause
    return error


def of_status(status: int, said: str = "that went wrong") -> Exception:
    return library.ModelHTTPError(status_code=status, model_name="m", body={"error": {"message": said}})


def ours(error: Exception) -> ModelError:
    return translated(error, answering=True)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (behind_connection(ssl.SSLCertVerificationError(1, "certificate verify failed")), "certificate is not trusted"),
        (from_client(UnsupportedProtocol("Request URL is missing a protocol.")), "begins with http://"),
        (from_client(ProxyError("407 Proxy Authentication Required")), "proxy wants a name"),
        (of_status(407), "proxy wants a name"),
        (of_status(501), "status 501"),
        (of_status(505), "status 505"),
        (FileNotFoundError(errno.ENOENT, "No such file", "ca.pem"), "ca.pem"),
        (behind_connection(PermissionError(errno.EACCES, "Permission denied")), "could not be made"),
        (OSError(errno.EINVAL, "Invalid argument"), "could not be made"),
        (of_status(500, "the request exceeds the available context size, try increasing it"), "Shorten it"),
        (of_status(500, "the input length exceeds the context length"), "Shorten it"),
    ],
)
def test_what_waiting_does_not_help_is_refused_at_once(error: Exception, words: str) -> None:
    refused = ours(error)
    assert type(refused) in (ModelRefusedError, ModelTooLongError)
    assert words in refused.message


@pytest.mark.parametrize(
    "error",
    [
        *(behind_connection(OSError(getattr(errno, name), name)) for name in ("ECONNREFUSED", "EHOSTUNREACH", "EPIPE")),
        ConnectionResetError(errno.ECONNRESET, "reset"),
        OSError("All connection attempts failed"),
        behind_connection(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")),
        from_client(ProxyError("502 Bad Gateway")),
        *(of_status(status) for status in (500, 502, 503, 504, 511, 529)),
        of_status(500, "context deadline exceeded"),
    ],
)
def test_a_provider_that_is_down_or_not_there_is_an_outage_of_any_length(error: Exception) -> None:
    outage = ours(error)
    assert isinstance(outage, ModelUnavailableError)
    assert outage.longest_outage_seconds is None


@pytest.mark.parametrize(("number", "longest"), [(socket.EAI_NONAME, 120.0), (socket.EAI_AGAIN, None)])
def test_a_name_that_does_not_exist_is_waited_for_only_for_a_short_time(number: int, longest: float | None) -> None:
    outage = ours(behind_connection(socket.gaierror(number, "Name or service not known")))
    assert isinstance(outage, ModelUnavailableError)
    assert "host name cannot be resolved" in outage.message
    assert outage.longest_outage_seconds == longest


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "Too many open files"), behind_connection(ssl.SSLError(1, "WRONG_VERSION_NUMBER"))]
)
def test_a_shortage_of_this_computer_and_a_broken_handshake_are_tried_again_a_few_times(error: Exception) -> None:
    failure = ours(error)
    assert type(failure) is ModelServerError
    assert failure.retryable


def test_what_was_being_handled_when_an_answer_could_not_be_read_is_not_to_blame() -> None:
    error = ValueError("no JSON")
    error.__context__ = FileNotFoundError(errno.ENOENT, "No such file")
    assert type(ours(error)) is ModelServerError
