"""What the acceptance tests have in common: they see nothing of the machine and the person that run them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.provider_stage import KEY

_PERSONAL = ("WHISPERER_", "OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "OPENROUTER_", "OLLAMA_")


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


@pytest.fixture
def provider_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
