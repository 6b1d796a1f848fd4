"""Where providers are asked, and with which key."""

from __future__ import annotations

import pytest

from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.compatible import COMPATIBLE, provider_address
from ai_whisperer.models.http.address import endpoint_of

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("prefix", "environment", "address"),
    [
        ("openai-chat", {"OPENAI_API_KEY": "k"}, ("https://api.openai.com/v1", "k")),
        ("openai-chat", {"OPENAI_BASE_URL": "http://here/v1"}, ("http://here/v1", "")),
        ("ollama", {}, ("http://127.0.0.1:11434/v1", "")),
        ("ollama", {"OLLAMA_HOST": "there:1", "OLLAMA_API_KEY": "k"}, ("http://there:1/v1", "k")),
        ("groq", {"GROQ_API_KEY": "k"}, ("https://api.groq.com/openai/v1", "k")),
        ("groq", {"GROQ_API_KEY": "k", "GROQ_BASE_URL": "http://g/openai/v1/"}, ("http://g/openai/v1/", "k")),
        ("heroku", {"HEROKU_INFERENCE_KEY": "k"}, ("https://us.inference.heroku.com/v1", "k")),
        ("vllm", {"VLLM_BASE_URL": "http://v/v1"}, ("http://v/v1", "")),
        ("litellm", {"OPENAI_BASE_URL": "http://l", "OPENAI_API_KEY": "k"}, ("http://l", "k")),
        ("alibaba", {"DASHSCOPE_API_KEY": "k"}, (COMPATIBLE["alibaba"].url, "k")),
    ],
)
def test_the_environment_says_where_and_with_which_key(
    prefix: str, environment: dict[str, str], address: tuple[str, str]
) -> None:
    assert provider_address(prefix, environment) == address


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("openai-chat", "`OPENAI_API_KEY`"),
        ("openrouter", "`OPENROUTER_API_KEY`"),
        ("vercel", "`VERCEL_AI_GATEWAY_API_KEY` or `VERCEL_OIDC_TOKEN`"),
        ("litellm", "`LITELLM_BASE_URL`"),
    ],
)
def test_what_is_missing_is_told(prefix: str, words: str) -> None:
    with pytest.raises(ModelRefusedError, match="environment variable") as caught:
        provider_address(prefix, {})
    assert words in caught.value.message


def test_a_request_has_all_headers_and_its_length() -> None:
    endpoint = endpoint_of("https://here.example:8443/v1/?version=2", "/chat", {"Authorization": "Bearer k"})
    head, _, body = endpoint.request(b"{}", {"Idempotency-Key": "t1.1"}).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /v1/chat?version=2 HTTP/1.1"
    wanted = {"Host: here.example:8443", "Authorization: Bearer k", "Idempotency-Key: t1.1", "Content-Length: 2"}
    assert wanted <= set(lines)
    assert body == b"{}"
    assert endpoint.origin[:3] == ("here.example", 8443, True)


def test_a_name_and_a_password_in_the_address_are_the_authorization() -> None:
    endpoint = endpoint_of("http://me:p%40ss@here/v1", "/chat", {"Authorization": "Bearer k"})
    assert b"Authorization: Basic bWU6cEBzcw==\r\n" in endpoint.start
    assert b"Bearer" not in endpoint.start
    assert b"Host: here\r\n" in endpoint.start


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "\u20ac"])
def test_a_header_that_is_more_than_one_is_refused(value: str) -> None:
    endpoint = endpoint_of("http://here/v1", "/chat", {})
    with pytest.raises(ModelRefusedError, match="characters that no header may have"):
        endpoint.request(b"", {"X-More": value})


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\tb", "\u00fc"])
def test_a_header_with_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ModelRefusedError, match="characters that no header may have"):
        endpoint_of("http://here/v1", "/chat", {}).request(b"", {name: "1"})


def test_a_header_of_the_settings_takes_the_place_of_ours() -> None:
    endpoint = endpoint_of("http://here/v1", "/chat", {"Authorization": "Bearer k", "Accept": "text/event-stream"})
    for headers in ({"authorization": "Basic x"}, {"AUTHORIZATION": "no", "authorization": "Basic x"}):
        lines = endpoint.request(b"", headers).decode().split("\r\n")
        assert [line for line in lines if line.lower().startswith("authorization:")] == ["authorization: Basic x"]
        assert "Accept: text/event-stream" in lines
        assert lines[0] == "POST /v1/chat HTTP/1.1"
    assert b"Authorization: Bearer k\r\n" in endpoint.request(b"", {})


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection", "HOST"])
def test_a_header_that_is_the_clients_own_is_refused(name: str) -> None:
    with pytest.raises(ModelRefusedError, match="extra_headers"):
        endpoint_of("http://here/v1", "/chat", {}).request(b"", {name: "1"})


@pytest.mark.parametrize("url", ["here/v1", "htp://here", "http://", "http://here:port", "http://here/a b"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ModelRefusedError, match="begins with http://"):
        endpoint_of(url, "/chat", {})


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://far.example/v1", {"HTTPS_PROXY": "http://me:pw@proxy:3128"}, ("proxy", 3128)),
        ("https://far.example/v1", {"all_proxy": "proxy:8080"}, ("proxy", 8080)),
        ("http://far.example/v1", {"https_proxy": "http://proxy:3128"}, None),
        ("https://far.example/v1", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "far.example"}, None),
        ("https://localhost/v1", {"HTTPS_PROXY": "http://proxy:3128"}, None),
        ("http://127.0.0.1:1/v1", {"ALL_PROXY": "http://proxy:3128"}, None),
    ],
)
def test_proxies_come_from_the_environment(
    url: str, environment: dict[str, str], proxy: tuple[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = endpoint_of(url, "/chat", {}).origin.proxy
    assert (None if found is None else found[:2]) == proxy


def test_a_plain_request_through_a_proxy_names_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:pw@proxy:3128")
    start = endpoint_of("http://far.example/v1", "/chat", {}).start
    assert start.startswith(b"POST http://far.example/v1/chat HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cHc=\r\n" in start


def test_a_proxy_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:hunter2-hunter2@proxy:1080")
    with pytest.raises(ModelRefusedError, match="HTTPS_PROXY") as caught:
        endpoint_of("https://far.example/v1", "/chat", {})
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("host", ["a..b", "x" * 70])
def test_a_host_that_nobody_can_look_up_is_a_wrong_address(host: str) -> None:
    with pytest.raises(ModelRefusedError, match="address cannot be used"):
        endpoint_of(f"http://{host}/v1", "/chat/completions", {})
