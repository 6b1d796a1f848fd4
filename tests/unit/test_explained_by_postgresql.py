"""What is told of a PostgreSQL that cannot be used: to whoever gave its address, and to clients."""

from __future__ import annotations

import logging
import socket
import ssl

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

import asyncpg

from ai_whisperer.errors import StoreReadOnlyError
from ai_whisperer.store.postgresql.connecting import explained, in_words

ADDRESS = "postgresql://me@db.inside:5432/books"


def not_accepted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "certificate is not valid for 'db.inside'"
    return error


def test_a_certificate_that_is_not_accepted_is_told_as_that() -> None:
    told = explained(not_accepted(), ADDRESS).message
    assert "(the certificate is not accepted: certificate is not valid for 'db.inside')" in told
    assert "sslrootcert" in told
    assert in_words(not_accepted()) == "the certificate is not accepted"
    assert in_words(ssl.SSLError(1, "wrong version number")) == "TLS does not work"


def test_a_host_without_an_address_is_told_as_that() -> None:
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert "(its name is not known: Name or service not known)" in explained(unknown, ADDRESS).message
    assert in_words(unknown) == "its name is not known"
    assert in_words(socket.gaierror(socket.EAI_AGAIN, "later")) == "its name cannot be looked up"


def test_the_whole_text_is_for_whoever_gave_the_address() -> None:
    refused = ConnectionError('PostgreSQL server at "db.inside:5432" rejected SSL upgrade')
    assert "rejected SSL upgrade" in explained(refused, ADDRESS).message
    assert "db.inside" not in explained(refused).message
    assert "connection refused" in explained(ConnectionRefusedError(111, "Connect call failed")).message


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InvalidAuthorizationSpecificationError('no entry for host "10.0.0.7", user "me", database "books"'),
        asyncpg.InvalidPasswordError('password authentication failed for user "me"'),
        asyncpg.InsufficientPrivilegeError('permission denied for database "books"'),
        asyncpg.TooManyConnectionsError('too many connections for role "me"'),
    ],
)
def test_clients_are_not_told_of_hosts_users_and_databases_and_the_log_is(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        told = explained(error).message
    assert not {"10.0.0.7", '"me"', '"books"'} & set(told.replace(",", " ").split())
    assert str(error) not in told
    assert str(error) in caplog.text
    assert str(error) not in in_words(error)


def test_whoever_gave_the_address_is_told_what_postgresql_says() -> None:
    told = explained(asyncpg.InsufficientPrivilegeError("permission denied for schema whisperer"), ADDRESS)
    assert isinstance(told, StoreReadOnlyError)
    assert "(permission denied for schema whisperer)" in told.message
