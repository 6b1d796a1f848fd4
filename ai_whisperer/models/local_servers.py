"""Model servers on this machine: what they are called, where they usually answer, and how all are asked at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple, TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")

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
"""By the prefix of the names of their models. Ollama is read as its own tools read it, see `detection.ollama_url`."""


def address_of(prefix: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The address of a server of that kind, as the environment has it or the usual one, and the key for it, if any."""
    server = LOCAL_SERVERS[prefix]
    named = next((value for name in server.variables if (value := environment.get(name, "").strip())), "")
    url = (named or server.url).rstrip("/")
    return url if url.endswith("/v1") else f"{url}/v1", environment.get(server.key, "").strip()


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
