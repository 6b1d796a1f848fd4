"""Model servers on this machine: what they are called, where they usually answer, and how all are asked at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

Key = TypeVar("Key")
Result = TypeVar("Result")

OLLAMA_URL = "http://127.0.0.1:11434"
"""Where an Ollama on this machine answers unless it was told otherwise."""
SECONDS_FOR_ALL = 2.0
"""So long they are waited for together: one that does not answer costs the others nothing."""


class LocalServer(NamedTuple):
    """A kind of server with an OpenAI-compatible interface. `variables` name another address, with or without `/v1`."""

    name: str
    url: str
    variables: tuple[str, ...]
    key: str
    """The variable with the key, for a server that wants one."""


LOCAL_SERVERS: Mapping[str, LocalServer] = {
    "llamacpp": LocalServer(
        "a llama.cpp server", "http://127.0.0.1:8080/v1", ("LLAMACPP_BASE_URL",), "LLAMACPP_API_KEY"
    ),
    "lmstudio": LocalServer("LM Studio", "http://127.0.0.1:1234/v1", ("LMSTUDIO_BASE_URL",), "LMSTUDIO_API_KEY"),
    "vllm": LocalServer("a vLLM server", "http://127.0.0.1:8000/v1", ("VLLM_BASE_URL",), "VLLM_API_KEY"),
}
"""By the prefix of the names of their models. Ollama is read as its own tools read it: see `ollama_url`."""


def local_address(prefix: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The address of a server of that kind, as the environment has it or the usual one, and the key for it, if any."""
    server = LOCAL_SERVERS[prefix]
    named = next((value for name in server.variables if (value := environment.get(name, "").strip())), "")
    url = (named or server.url).rstrip("/")
    return url if url.endswith("/v1") else f"{url}/v1", environment.get(server.key, "").strip()


def ollama_url(environment: Mapping[str, str]) -> str:
    """The address of Ollama's OpenAI-compatible interface, as the environment has it or the usual one.

    `OLLAMA_BASE_URL` is that address, with or without `/v1`; `OLLAMA_HOST` is written as Ollama itself reads it.
    """
    base = environment.get("OLLAMA_BASE_URL", "").strip() or _address_of_host(environment.get("OLLAMA_HOST", ""))
    base = base.rstrip("/")
    return base if base.endswith("/v1") else f"{base}/v1"


def _address_of_host(host: str) -> str:
    """The address that a client uses for what `OLLAMA_HOST` tells the server to listen on."""
    scheme, _, rest = host.strip().rpartition("://")
    parts = parts_of_address(f"//{rest}") if rest else None
    if parts is None:
        return OLLAMA_URL
    name = parts.hostname or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - what it listens on, not we
    name = f"[{name}]" if ":" in name else name
    port = parts.port or {"http": 80, "https": 443}.get(scheme, 11434)
    return f"{scheme or 'http'}://{name}:{port}{parts.path}"


def parts_of_address(url: str) -> SplitResult | None:
    """The parts of an address, None if it is none."""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        return None
    return parts


def ask_all(ask: Callable[[str], Result | None], addresses: Mapping[Key, str]) -> dict[Key, Result]:
    """What those say that answer in time, all asked at the same moment. Of one that says nothing `ask` returns None."""
    answers: SimpleQueue[tuple[Key, Result | None]] = SimpleQueue()

    def run(key: Key, address: str) -> None:
        answers.put((key, ask(address)))

    for key, address in addresses.items():
        Thread(target=run, args=(key, address), name="whisperer-look", daemon=True).start()
    deadline = time.monotonic() + SECONDS_FOR_ALL
    found: dict[Key, Result] = {}
    for _ in addresses:
        try:
            key, result = answers.get(timeout=max(deadline - time.monotonic(), 0.0))
        except Empty:
            break
        if result is not None:
            found[key] = result
    return {key: found[key] for key in addresses if key in found}
