"""Which model is used when nobody has named one."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import get_args

import pytest
from genai_prices.data import providers
from pydantic_ai.models import KnownModelName

from ai_whisperer.cli.model_choice import check_usable
from ai_whisperer.errors import ModelNameError, ModelServerError
from ai_whisperer.models import local_servers
from ai_whisperer.models.catalog import resolve
from ai_whisperer.models.detection import (
    ANTHROPIC,
    DEFAULT_MODELS,
    GOOGLE,
    LLAMACPP,
    LMSTUDIO,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    PROVIDERS,
    SERVERS,
    USUAL_ADDRESSES,
    VLLM,
    Candidate,
    Detection,
    Provider,
    detect_model,
    list_models,
    shown_address,
)
from ai_whisperer.models.local_servers import ollama_url
from ai_whisperer.models.names import SCRIPTED_DEMO
from ai_whisperer.models.pydantic_ai import PydanticAIModel, _provider
from ai_whisperer.testing.model_server import ModelServer

KEY = "sk-canary-0123456789abcdef"


def detected(environment: Mapping[str, str]) -> Detection:
    return detect_model(environment, usual_addresses={})


def with_server(models: Sequence[str], environment: Mapping[str, str]) -> tuple[Detection, dict[str, str]]:
    """What is detected beside a server with these models, `{url}` being its address; and what the server was sent."""

    async def run() -> tuple[Detection, dict[str, str]]:
        async with ModelServer(models=models) as server:
            filled = {name: value.format(url=server.base_url) for name, value in environment.items()}
            local = {each: filled.pop(each.prefix) for each in USUAL_ADDRESSES if each.prefix in filled}
            found = await asyncio.to_thread(detect_model, filled, usual_addresses=local)
            return found, server.received[-1].headers if server.received else {}

    return asyncio.run(run())


def unused_url() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def install_nothing_of(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ai_whisperer.models.detection.find_spec", lambda _: object())


def test_without_any_key_the_scripted_model_is_used_and_it_can_be_had() -> None:
    found = detected({"PATH": "/bin", "OPENAI_API_KEY": " "})
    assert found.model == SCRIPTED_DEMO
    assert found.model == SCRIPTED_DEMO
    assert found.why == "the environment has no key and no model server"
    assert found.problems == []
    assert resolve(found.model) is not None


@pytest.mark.usefixtures("everything_installed")
@pytest.mark.parametrize(
    ("variable", "prefix"),
    [
        ("OPENAI_API_KEY", "openai-chat:"),
        ("ANTHROPIC_API_KEY", "anthropic:"),
        ("ANTHROPIC_AUTH_TOKEN", "anthropic:"),
        ("ANTHROPIC_BASE_URL", "anthropic:"),
        ("GOOGLE_API_KEY", "google:"),
        ("GEMINI_API_KEY", "google:"),
        ("OPENROUTER_API_KEY", "openrouter:"),
    ],
)
def test_a_key_brings_a_model_of_its_provider(variable: str, prefix: str) -> None:
    found = detected({variable: KEY})
    assert found.model.startswith(prefix)
    assert found.why == f"{variable} is set"
    assert found.model != SCRIPTED_DEMO
    assert KEY not in repr(found)


@pytest.mark.usefixtures("everything_installed")
def test_of_several_keys_the_first_in_the_fixed_order_counts() -> None:
    keys = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"]
    chosen = [detected(dict.fromkeys(reversed(keys[at:]), KEY)).why for at in range(len(keys))]
    assert chosen == [f"{key} is set" for key in keys]


def test_a_provider_whose_package_is_missing_is_passed_over_and_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    install_nothing_of(monkeypatch, "google.genai")
    alone = detected({"GOOGLE_API_KEY": KEY})
    assert alone.model == SCRIPTED_DEMO
    assert alone.why == "no other model can be used"
    (problem,) = alone.problems
    assert problem.startswith("GOOGLE_API_KEY is set, but")
    assert "pip install 'ai-whisperer[google]'" in problem
    beside = detected({"GOOGLE_API_KEY": KEY, "OPENROUTER_API_KEY": KEY})
    assert beside.model.startswith("openrouter:")
    assert beside.problems == [problem]


def test_a_model_whose_package_is_missing_is_refused_with_the_same_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(prefix: str) -> None:
        raise ImportError(prefix)

    monkeypatch.setattr("ai_whisperer.models.pydantic_ai.infer_provider_class", missing)
    with pytest.raises(ModelNameError, match=r"pip install 'ai-whisperer\[google\]'"):
        PydanticAIModel("google:gemini")


def test_every_extra_that_somebody_is_told_to_install_is_one_of_the_package() -> None:
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    told = {each.extra for each in PROVIDERS if not each.is_installed or each.extra}
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "ai_whisperer").rglob("*.py")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        told |= set(re.findall(r"ai-whisperer\[([a-z]+)\]", text))
        assert not re.findall(r"pip install ['\"](?:pydantic-ai-slim|\.)\[", text), f"{page} names it otherwise"
    assert told == {"anthropic", "cluster", "google", "mcp", "test", "uvloop"}
    assert told <= set(extras)


def test_a_package_within_another_is_missing_when_the_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    install_nothing_of(monkeypatch, "google", "google.genai")
    assert not GOOGLE.is_installed
    assert OPENAI.is_installed


def test_a_compatible_server_is_asked_for_its_models_with_the_key() -> None:
    found, headers = with_server(
        ["text-embedding-x", "qwen3-8b", "other"], {"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": KEY}
    )
    assert found.model == "openai-chat:qwen3-8b"
    assert found.why.startswith("OPENAI_BASE_URL is http://127.0.0.1:")
    assert headers["authorization"] == f"Bearer {KEY}"


def test_a_local_server_needs_no_key() -> None:
    found, headers = with_server(["mine"], {"OPENAI_BASE_URL": "{url}/"})
    assert found.model == "openai-chat:mine"
    assert "authorization" not in headers


def test_a_gateway_that_has_the_usual_model_is_asked_for_that() -> None:
    usual = DEFAULT_MODELS[OPENAI]
    found, _ = with_server(["aaa", usual], {"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": KEY})
    assert found.model == f"openai-chat:{usual}"


def test_the_provider_itself_as_base_url_is_not_asked() -> None:
    found = detected({"OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_API_KEY": KEY})
    assert found.model == f"openai-chat:{DEFAULT_MODELS[OPENAI]}"


def test_a_server_that_does_not_answer_is_told_of_and_the_next_choice_is_taken() -> None:
    url = unused_url()
    found = detected({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY, "OPENROUTER_API_KEY": KEY})
    assert found.model.startswith("openrouter:")
    (problem,) = found.problems
    assert problem.startswith(f"OPENAI_BASE_URL: No model server answers at {url} (")


def test_a_server_without_models_is_told_of() -> None:
    found, _ = with_server([], {"OPENAI_BASE_URL": "{url}"})
    assert found.model == SCRIPTED_DEMO
    assert "has no model" in found.problems[0]


@pytest.mark.parametrize("variable", ["OLLAMA_BASE_URL", "OLLAMA_HOST"])
def test_an_ollama_that_the_environment_names_is_asked_for_its_models(variable: str) -> None:
    found, _ = with_server(["nomic-embed-text", "llama3.2:3b"], {variable: "{url}"})
    assert found.model == "ollama:llama3.2:3b"
    assert found.why.startswith(f"{variable} is http://127.0.0.1:")


def test_an_ollama_on_this_machine_is_found_and_comes_last() -> None:
    found, _ = with_server(["llama3.2:3b"], {"ollama": "{url}"})
    assert found.model == "ollama:llama3.2:3b"
    assert found.why.startswith("an Ollama answers at http://127.0.0.1:")
    other, _ = with_server(["llama3.2:3b"], {"ollama": "{url}", "OPENAI_API_KEY": KEY})
    assert other.why == "OPENAI_API_KEY is set"
    empty, _ = with_server([], {"ollama": "{url}"})
    assert "ollama pull" in empty.problems[0]


def test_no_ollama_on_this_machine_is_no_problem() -> None:
    found = detect_model({}, usual_addresses={OLLAMA: unused_url()})
    assert (found.model, found.candidates) == (SCRIPTED_DEMO, ())


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "http://127.0.0.1:11434/v1"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1"),  # noqa: S104
        ({"OLLAMA_HOST": "192.168.1.5:9000"}, "http://192.168.1.5:9000/v1"),
        ({"OLLAMA_HOST": ":9000"}, "http://127.0.0.1:9000/v1"),
        ({"OLLAMA_HOST": "https://ollama.example"}, "https://ollama.example:443/v1"),
        ({"OLLAMA_HOST": "[::]:9000"}, "http://[::1]:9000/v1"),
        ({"OLLAMA_HOST": "a:b:c"}, "http://127.0.0.1:11434/v1"),
        ({"OLLAMA_BASE_URL": "http://box:11434"}, "http://box:11434/v1"),
        ({"OLLAMA_BASE_URL": "http://box:11434/v1/", "OLLAMA_HOST": "x"}, "http://box:11434/v1"),
    ],
)
def test_the_address_of_ollama_is_read_as_ollama_does(environment: dict[str, str], url: str) -> None:
    assert ollama_url(environment) == url


def test_a_model_of_ollama_needs_no_address_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "0.0.0.0:9000")
    assert _provider(OLLAMA.prefix).base_url == "http://127.0.0.1:9000/v1/"


@pytest.mark.parametrize("url", ["ftp://x/v1", "file:///etc", "nonsense", "http://[", "http://x:99999/v1", ""])
def test_an_address_that_is_none_is_told_so(url: str) -> None:
    with pytest.raises(ModelServerError, match="is not the address of a server"):
        list_models(url)


def test_a_password_in_an_address_is_not_shown() -> None:
    assert shown_address("https://me:canary@gateway.example/v1?key=canary") == "https://gateway.example/v1"
    assert "canary" not in shown_address("http://me:canary@[broken?k=canary")
    found = detected({"OPENAI_BASE_URL": unused_url().replace("http://", "http://me:canary@")})
    assert found.problems
    assert "canary" not in repr(found)


def answer_with(raw: bytes) -> str:
    """The complaint about a server that answers every request with these bytes."""

    async def run() -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(raw)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        try:
            with pytest.raises(ModelServerError) as caught:
                await asyncio.to_thread(list_models, f"http://127.0.0.1:{port}/v1", key=KEY)
        finally:
            listener.close()
        return caught.value.message

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", "refused to list its models (status 401)"),
        (b"HTTP/1.1 302 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", "(status 302)"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", "does not list models"),
        (b"HTTP/1.1 200 OK\r\n\r\n[1]", "does not list models"),
        (b'HTTP/1.1 200 OK\r\n\r\n{"data": [1]}', "does not list models"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", "does not list models"),
        (b"nonsense\r\n\r\n", "does not list models"),
    ],
)
def test_a_server_that_answers_nonsense_is_told_of_in_a_sentence(raw: bytes, complaint: str) -> None:
    told = answer_with(raw)
    assert complaint in told
    assert KEY not in told


def test_the_usual_models_are_known_to_the_price_list_and_not_on_their_way_out() -> None:
    listed = {(provider.id, model.id): model for provider in providers for model in provider.models}
    names = {OPENAI: "openai", ANTHROPIC: "anthropic", GOOGLE: "google", OPENROUTER: "openrouter"}
    assert DEFAULT_MODELS.keys() == names.keys()
    for provider, name in DEFAULT_MODELS.items():
        assert not listed[names[provider], name].deprecated


def test_the_usual_models_are_known_to_the_provider_library() -> None:
    known = set(get_args(KnownModelName.__value__))
    assert f"openai:{DEFAULT_MODELS[OPENAI]}" in known
    assert f"anthropic:{DEFAULT_MODELS[ANTHROPIC]}" in known
    assert f"google:{DEFAULT_MODELS[GOOGLE]}" in known


def test_the_prefixes_are_those_of_the_catalog() -> None:
    for provider in PROVIDERS:
        assert resolve(f"{provider.prefix}:x") is not None
    assert PydanticAIModel("openrouter:x").prefix == "openrouter"


@pytest.mark.parametrize(
    ("provider", "words"), [(LLAMACPP, "a llama.cpp server"), (LMSTUDIO, "LM Studio"), (VLLM, "a vLLM server")]
)
def test_a_server_at_its_usual_port_is_found_and_its_model_can_be_used(
    provider: Provider, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = with_server(["text-embed-1", "qwen3-4b"], {provider.prefix: "{url}"})
    assert found.model == f"{provider.prefix}:qwen3-4b"
    assert found.why.startswith(f"{words} answers at http://127.0.0.1:")
    monkeypatch.setenv(SERVERS[provider][0], "http://127.0.0.1:9/")
    assert _provider(provider.prefix).base_url == "http://127.0.0.1:9/v1/"
    monkeypatch.delenv(SERVERS[provider][0])
    assert _provider(provider.prefix).base_url == f"{USUAL_ADDRESSES[provider]}/"


@pytest.mark.parametrize("provider", [LLAMACPP, LMSTUDIO, VLLM])
def test_a_server_that_the_environment_names_is_asked_with_its_key(provider: Provider) -> None:
    variable = SERVERS[provider][0]
    found, headers = with_server(
        ["qwen3-4b"], {variable: "{url}", variable.replace("BASE_URL", "API_KEY"): KEY, "ollama": "{url}"}
    )
    assert found.model == f"{provider.prefix}:qwen3-4b"
    assert found.why.startswith(f"{variable} is http://127.0.0.1:")
    assert headers["authorization"] == f"Bearer {KEY}"


def test_of_several_servers_on_this_machine_the_first_counts_and_all_are_known() -> None:
    found, _ = with_server(["qwen3-4b"], {"vllm": "{url}", "llamacpp": "{url}", "ollama": "{url}"})
    assert [each.model for each in found.candidates] == ["ollama:qwen3-4b", "llamacpp:qwen3-4b", "vllm:qwen3-4b"]
    assert found.model == "ollama:qwen3-4b"


@pytest.mark.parametrize(
    "environment", [{"OPENAI_API_KEY": KEY}, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, {"VLLM_BASE_URL": "x"}]
)
def test_nobody_is_asked_at_usual_ports_where_something_is_named(environment: dict[str, str]) -> None:
    found, headers = with_server(["qwen3-4b"], {**environment, "ollama": "{url}", "lmstudio": "{url}"})
    assert headers == {}
    assert not found.model.startswith(("ollama:", "lmstudio:"))


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n<html>",
        b'HTTP/1.1 200 OK\r\n\r\n{"data": [{"id": "order-1"}]}',
        b'HTTP/1.1 200 OK\r\n\r\n{"object": "list", "data": [{"id": "order-1", "object": "order"}]}',
        b'HTTP/1.1 200 OK\r\n\r\n{"object": "page", "data": [{"id": "a", "object": "model"}]}',
        b"SSH-2.0-OpenSSH\r\n",
    ],
)
def test_what_answers_at_a_usual_port_and_is_no_model_server_is_not_taken(raw: bytes) -> None:
    assert detected_beside([raw]).candidates == ()


def test_one_that_says_nothing_costs_the_others_no_time_and_the_person_not_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_servers, "SECONDS_FOR_ALL", 0.3)
    listed = b'HTTP/1.1 200 OK\r\n\r\n{"object": "list", "data": [{"id": "mine", "object": "model"}]}'
    found = detected_beside([b"", b"", listed])
    assert found.model == "lmstudio:mine"


def detected_beside(answers: Sequence[bytes]) -> Detection:
    """What is detected beside servers at the usual places that answer so; with nothing, one answers never."""

    async def run() -> Detection:
        over = asyncio.Event()

        def serving(raw: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                if not raw:
                    await over.wait()
                writer.write(raw)
                writer.close()

            return serve

        listeners = [await asyncio.start_server(serving(raw), "127.0.0.1", 0) for raw in answers]
        ports = [each.sockets[0].getsockname()[1] for each in listeners]
        places = {each: f"http://127.0.0.1:{port}/v1" for each, port in zip(USUAL_ADDRESSES, ports, strict=False)}
        try:
            return await asyncio.to_thread(detect_model, {}, usual_addresses=places)
        finally:
            over.set()
            for listener in listeners:
                listener.close()

    return asyncio.run(run())


def test_what_the_environment_names_and_cannot_be_used_is_not_replaced_by_fixed_answers() -> None:
    refused = Candidate(source="OPENAI_BASE_URL is http://x", problem="OPENAI_BASE_URL: refused (status 401).")
    with pytest.raises(ModelNameError, match=r"status 401.*--model scripted"):
        check_usable(Detection(model=SCRIPTED_DEMO, why="nothing can be used", candidates=(refused,)))
    check_usable(Detection(model=SCRIPTED_DEMO, why="nothing was named"))
    check_usable(Detection(model="openai-chat:x", why="it can", candidates=(refused,)))
