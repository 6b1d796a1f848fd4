"""Names of models and what they mean."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic_ai.providers import infer_provider_class

from ai_whisperer.core.definitions import definition_from
from ai_whisperer.errors import AnswerSizeError, DefinitionError, ModelError, ModelNameError
from ai_whisperer.models.anthropic_messages import AnthropicModel
from ai_whisperer.models.base import Model, ModelRequest, StreamEvent, TextDelta, collect
from ai_whisperer.models.catalog import PREFIXES, LateModel, OwnOrLibrary, resolve
from ai_whisperer.models.compatible import COMPATIBLE
from ai_whisperer.models.local_servers import LOCAL_SERVERS
from ai_whisperer.models.openai_chat import OpenAIChatModel
from ai_whisperer.models.own_client import OwnClientModel
from ai_whisperer.models.pydantic_ai import PydanticAIModel
from ai_whisperer.models.scripted import ScriptedModel


def test_scripted_is_the_scripted_model() -> None:
    assert isinstance(resolve("scripted"), ScriptedModel)


def test_scripted_with_a_path_reads_that_file(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def from_file(path: Path) -> ScriptedModel:
        read.append(path)
        return ScriptedModel()

    monkeypatch.setattr(ScriptedModel, "from_file", from_file)
    assert isinstance(resolve("scripted:some/rules.yaml"), ScriptedModel)
    assert read == [Path("some/rules.yaml")]


@pytest.mark.parametrize("name", ["openai:some-model", "openai-responses:some-model", "mistral:some-model"])
def test_a_prefix_means_the_model_of_a_provider(name: str) -> None:
    model = resolve(name)
    assert isinstance(model, LateModel)
    if name.startswith("openai"):  # the package of the other is not installed
        made = asyncio.run(model.made())
        assert isinstance(made, PydanticAIModel)
        assert made.name == name


@pytest.mark.parametrize(
    ("name", "kind"),
    [("anthropic:some-model", AnthropicModel), *((f"{prefix}:some:model", OpenAIChatModel) for prefix in COMPATIBLE)],
)
def test_many_providers_are_asked_by_our_own_client(name: str, kind: type[OwnClientModel]) -> None:
    model = resolve(name)
    assert isinstance(model, OwnOrLibrary)
    assert isinstance(model.own, kind)
    assert (model.own.name, model.own.model) == (name, name.partition(":")[2])


def test_those_whom_our_own_client_asks_are_known_to_the_provider_library_too() -> None:
    assert set(COMPATIBLE) - set(LOCAL_SERVERS) < set(PREFIXES)


def test_a_setting_lets_the_provider_library_ask() -> None:
    asked: list[str] = []

    class Library(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
            asked.append(request.step_id)
            yield TextDelta(text="x")

    async def make() -> Model:
        return Library()

    async def scenario() -> None:
        model = resolve("openai-chat:some-model")
        assert isinstance(model, OwnOrLibrary)
        model.library = LateModel(make)
        settings = definition_from({"settings": {"client": "pydantic-ai"}}).settings
        request = ModelRequest(step_id="t1.1", agent_id="ada", system="", turns=(), settings=settings)
        assert [event async for event in model.stream(request)] == [TextDelta(text="x")]
        await model.close()

    asyncio.run(scenario())
    assert asked == ["t1.1"]


@pytest.mark.parametrize("client", ["", "openai", None, 7, ["own"]])
def test_a_client_that_there_is_not_is_refused_with_those_that_there_are(client: object) -> None:
    with pytest.raises(DefinitionError, match=r"settings\.client must be 'own' or 'pydantic-ai'"):
        definition_from({"settings": {"client": client}})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max_token": 3}, "no setting 'max_token' of a model. Did you mean 'max_tokens'?"),
        ({"temprature": 2}, "Did you mean 'temperature'?"),
        ({"max_tokens": "lots"}, "settings.max_tokens must be a whole number of at least 1, not 'lots'."),
        ({"max_tokens": 0}, "settings.max_tokens must be a whole number"),
        ({"temperature": "hot"}, "settings.temperature must be a number, not 'hot'."),
    ],
)
def test_a_setting_that_nobody_would_pass_on_as_it_is_meant_is_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(told)):
        definition_from({"settings": settings})


def test_a_setting_of_one_provider_is_left_to_it() -> None:
    settings = {"openai_reasoning_effort": "low", "top_k": 3, "keep_alive": "5m", "temperature": 1, "max_tokens": 9}
    assert definition_from({"settings": settings}).settings == settings


def test_a_missing_key_does_not_make_a_name_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    assert isinstance(resolve("openrouter:some-model"), OwnOrLibrary)
    assert PydanticAIModel("openrouter:some-model").prefix == "openrouter"


@pytest.mark.parametrize(
    "name", ["", ":", "gpt-5", "openai-chat", "openai-chat:", ":gpt-5", "scripted:", "nobody:x", "openai-chat: "]
)
def test_any_other_name_is_refused_with_the_forms_that_there_are(name: str) -> None:
    with pytest.raises(ModelNameError, match="PREFIX:NAME") as caught:
        resolve(name)
    assert repr(name) in caught.value.message
    assert "`scripted`" in caught.value.message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("antropic:claude", "anthropic"),
        ("OpenAI-Chat:x", "openai-chat"),
        ("openrooter:x", "openrouter"),
        ("script", "scripted"),
    ],
)
def test_a_slip_of_the_pen_is_told_what_may_be_meant(name: str, meant: str) -> None:
    with pytest.raises(ModelNameError, match=rf"Near known prefixes: .*\b{meant}\b"):
        resolve(name)


def test_every_prefix_named_here_is_known_to_the_provider_library() -> None:
    for prefix in PREFIXES:
        with suppress(ImportError):  # its package is not installed, but its name is known
            infer_provider_class(prefix)


def test_a_provider_that_is_not_installed_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.anthropic", raising=False)
    with pytest.raises(ModelNameError, match=r"pip install .ai-whisperer\[anthropic\]"):
        PydanticAIModel("anthropic:some-model")


def test_a_stream_that_is_left_closes_the_one_behind_it_at_once() -> None:
    closed: list[str] = []

    class Endless(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
            try:
                while True:
                    yield TextDelta(text="and on " * 100)
            finally:
                closed.append(request.step_id)

    async def make() -> Model:
        return Endless()

    async def scenario() -> None:
        request = ModelRequest(step_id="t1.1", agent_id="ada", system="", turns=())
        with pytest.raises(AnswerSizeError):
            await collect(LateModel(make).stream(request), max_bytes=1_000)
        assert closed == ["t1.1"]

    asyncio.run(scenario())


def test_a_model_that_cannot_be_made_has_no_price_and_tells_why_with_its_request() -> None:
    async def make() -> Model:
        raise ModelNameError("The package is missing.")

    async def scenario() -> None:
        model = LateModel(make)
        await model.prepare()
        assert model.price_usd(1_000, 1_000) is None
        with pytest.raises(ModelNameError, match="package is missing"):
            await collect(model.stream(ModelRequest(step_id="t1.1", agent_id="ada", system="", turns=())))
        await model.close()

    asyncio.run(scenario())


def test_a_wrong_name_is_not_worth_a_retry() -> None:
    error: ModelError = ModelNameError()
    assert not error.retryable


@pytest.mark.parametrize("module", ["ai_whisperer", "ai_whisperer.models.catalog", "ai_whisperer.models.openai_chat"])
def test_the_provider_library_is_not_loaded_before_it_is_wanted(module: str) -> None:
    check = f"import sys, {module}; sys.exit('pydantic_ai' in sys.modules or 'openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_rules_that_cannot_be_read_are_a_model_that_cannot_be_used(tmp_path: Path) -> None:
    missing = f"scripted:{tmp_path}/none.yaml"
    with pytest.raises(ModelNameError, match=r"none\.yaml: cannot be read: No such file or directory\. Correct the"):
        resolve(missing)
