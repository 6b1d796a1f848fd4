"""What the acceptance tests have in common: they see nothing of the machine and the person that run them."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from ai_whisperer.models.http import pool
from tests.acceptance.client_stage import StagedServer
from tests.acceptance.command_stage import Whisperer, serving
from tests.acceptance.preloaded import preloaded
from tests.acceptance.provider_stage import CLIENTS, KEY, use_client

_numbers = count(1)
_PERSONAL = (
    "WHISPERER_",
    "OPENAI_",
    "ANTHROPIC_",
    "GOOGLE_",
    "GEMINI_",
    "OPENROUTER_",
    "OLLAMA_",
    "LLAMACPP_",
    "LMSTUDIO_",
    "VLLM_",
)


@pytest.fixture(scope="package", autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An environment without settings, keys and proxies, a home without templates, and an empty folder."""
    folder = tmp_path_factory.mktemp("nowhere")
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(_PERSONAL) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        patch.setenv("NO_PROXY", "*")
        patch.setenv("HOME", str(folder))
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        patch.chdir(folder)
        yield


@pytest.fixture(scope="package")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the path, with a `whisperer` that is quick to start."""
    with preloaded(tmp_path_factory.mktemp("commands")) as folder:
        yield folder


@pytest.fixture
def provider_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(params=CLIENTS)
def provider_client(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the clients that ask providers."""
    use_client(request.param)
    yield request.param
    use_client("own")


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """A server's certificate for provider.test, which is trusted."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on this machine to make a certificate with")
    public, private = tmp_path / "certificate.pem", tmp_path / "key.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=provider.test", "-addext", "subjectAltName=DNS:provider.test,IP:127.0.0.1"]
    files = ["-keyout", str(private), "-out", str(public)]
    subprocess.run(["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    monkeypatch.setenv("SSL_CERT_FILE", str(public))
    pool._read_trusted.cache_clear()
    yield context
    pool._read_trusted.cache_clear()


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


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of a server that runs."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder):
        yield folder


@pytest.fixture
def whisperer(data: Path, capsys: pytest.CaptureFixture[str]) -> Whisperer:
    """The command line, with the server of `data`."""
    return Whisperer(data, capsys)
