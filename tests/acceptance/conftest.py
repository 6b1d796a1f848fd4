"""What the tests of providers have in common, and those of the client."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.acceptance.client_stage import StagedServer
from tests.acceptance.provider_stage import KEY

_numbers = count(1)


@pytest.fixture
def provider_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StagedServer]:
    """A server for the tests of one module; each has a session of its own on it."""
    staged = StagedServer(tmp_path_factory.mktemp("server"), max_frame_bytes=1_000_000)
    yield staged
    staged.close()


@pytest.fixture
def session_id() -> str:
    """A session that no other test uses."""
    return f"session-{next(_numbers)}"
