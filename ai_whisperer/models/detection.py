"""Which model to use when nobody has named one: what the environment offers, in a fixed order.

Keys and addresses are looked at by the names of their variables; the values of keys are never kept or shown. Servers
that the environment names are asked which models they have, with a short patience, and if it names nothing, those that
answer where model servers on this machine usually do: so this is for commands that a person starts, not for imports.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import msgspec

from ai_whisperer.errors import ModelServerError
from ai_whisperer.models.local_servers import (
    LOCAL_SERVERS,
    OLLAMA_URL,
    ask_all,
    local_address,
    ollama_url,
    parts_of_address,
)
from ai_whisperer.models.names import AUTO, SCRIPTED, SCRIPTED_DEMO

NAMED_BY = "WHISPERER_MODEL"
"""The variable that names the model for a server, and for a program that names none."""

_log = logging.getLogger(__name__)
_PATIENCE_SECONDS = 2.0
_MAX_LIST_BYTES = 4 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_CHAT = re.compile(r"embed|whisper|tts|rerank|moderation|dall-e|image|transcribe|audio|realtime", re.IGNORECASE)


class Provider(NamedTuple):
    """A provider of models, and the extra of ours that installs the package with which the provider library asks it."""

    prefix: str
    package: str = ""
    """Empty for a provider that our own client asks, which needs none."""
    extra: str = ""

    @property
    def is_installed(self) -> bool:
        try:
            return not self.package or find_spec(self.package) is not None
        except (ImportError, ValueError):
            return False

    @property
    def install(self) -> str:
        return f"pip install 'ai-whisperer[{self.extra}]'"


OPENAI = Provider("openai-chat")
ANTHROPIC = Provider("anthropic", extra="anthropic")
GOOGLE = Provider("google", "google.genai", "google")
OPENROUTER = Provider("openrouter")
OLLAMA = Provider("ollama")
LLAMACPP = Provider("llamacpp")
LMSTUDIO = Provider("lmstudio")
VLLM = Provider("vllm")
PROVIDERS = (OPENAI, ANTHROPIC, GOOGLE, OPENROUTER, OLLAMA, LLAMACPP, LMSTUDIO, VLLM)
"""The providers that are looked for, in the order in which they are taken."""

DEFAULT_MODELS = {
    OPENAI: "gpt-5.4-mini",
    ANTHROPIC: "claude-haiku-5-5",
    GOOGLE: "gemini-3.5-flash-lite",
    OPENROUTER: "openai/gpt-5.4-mini",
}
"""Small, cheap models that can use tools. A server of one's own is asked for its models instead."""

KEYS = {
    OPENAI: ("OPENAI_API_KEY",),
    ANTHROPIC: ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    GOOGLE: ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    OPENROUTER: ("OPENROUTER_API_KEY",),
}
"""The variables that hold the keys."""

LOCAL = (LLAMACPP, LMSTUDIO, VLLM)
SERVERS = {
    OPENAI: ("OPENAI_BASE_URL",),
    ANTHROPIC: ("ANTHROPIC_BASE_URL",),
    OLLAMA: ("OLLAMA_BASE_URL", "OLLAMA_HOST"),
    **{each: LOCAL_SERVERS[each.prefix].variables for each in LOCAL},
}
"""The variables that name model servers."""

USUAL_ADDRESSES: Mapping[Provider, str] = {
    OLLAMA: f"{OLLAMA_URL}/v1",
    **{each: LOCAL_SERVERS[each.prefix].url for each in LOCAL},
}
"""Where model servers on this machine answer unless they were told otherwise, the first choice first."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A model that the environment offers through `source`. One that has a `problem` cannot be used."""

    source: str
    model: str = ""
    problem: str | None = None


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """The model to use, why it is this one, and all that the environment offers, the first choice first."""

    model: str
    why: str
    candidates: tuple[Candidate, ...] = ()

    @property
    def problems(self) -> list[str]:
        """What kept the choices before this one from being it, each with what to do."""
        problems: list[str] = []
        for candidate in self.candidates:
            if candidate.problem is None:
                break
            problems.append(candidate.problem)
        return problems

    def told(self, how: str) -> str:
        """Which model answers and why, after what kept others from it, a line each. `how` names another."""
        choice = f"The model is {self.model} ({self.why})."
        if self.model in (SCRIPTED, SCRIPTED_DEMO):
            choice = (
                f"The model is {self.model}, the built-in one with fixed answers ({self.why}). "
                f"Set the key of a provider, or {how}, for a real one."
            )
        return "\n".join([*self.problems, choice])


_finding = Lock()
_found: dict[tuple[tuple[str, int], ...], Detection] = {}


def found_model(environment: Mapping[str, str]) -> Detection:
    """The model that `NAMED_BY` names or the environment offers; which it is, the log says once in a process.

    Servers are asked once, so this blocks.
    """
    variables = [name for names in (*KEYS.values(), *SERVERS.values()) for name in names]
    key = tuple((name, hash(environment.get(name, "").strip())) for name in (NAMED_BY, *variables))
    with _finding:
        if key not in _found:
            named = environment.get(NAMED_BY, "").strip()
            found = Detection(model=named, why=f"{NAMED_BY} is set")
            _found[key] = found = detect_model(environment) if named in ("", AUTO) else found
            # The level that shows without a set-up: it may cost money, or be no model.
            _log.warning("%s", found.told("model="))
        return _found[key]


def detect_model(
    environment: Mapping[str, str], *, usual_addresses: Mapping[Provider, str] = USUAL_ADDRESSES
) -> Detection:
    """The first model of the environment that can be used, else the built-in scripted one.

    `usual_addresses` is where to look for servers on this machine if the environment has no key and names no server.
    All that answer there are candidates, so that a person can see what else there is.
    """
    candidates: list[Candidate] = []
    for candidate in _offered(environment):
        candidates.append(candidate)
        if candidate.problem is None:
            return Detection(model=candidate.model, why=candidate.source, candidates=tuple(candidates))
    if not candidates:
        candidates = _on_this_machine(usual_addresses)
    for candidate in candidates:
        if candidate.problem is None:
            return Detection(model=candidate.model, why=candidate.source, candidates=tuple(candidates))
    why = "no other model can be used" if candidates else "the environment has no key and no model server"
    return Detection(model=SCRIPTED_DEMO, why=why, candidates=tuple(candidates))


def list_models(base_url: str, *, key: str = "", strictly: bool = False) -> list[str]:
    """The models that a server with an OpenAI-compatible interface offers; raises `ModelServerError`.

    One that nobody has named must list them `strictly` as such: anything may answer at a usual port.
    """
    parts = parts_of_address(base_url)
    shown = shown_address(base_url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ModelServerError(f"'{shown}' is not the address of a server. It must begin with http:// or https://.")
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=f"{parts.path.rstrip('/')}/models")
    request = Request(address.geturl(), headers=headers)  # noqa: S310 - the scheme was checked
    # A server on this machine is not behind a proxy. A redirect would carry the key to who knows where.
    proxies = [ProxyHandler({})] if parts.hostname in _LOOPBACK else []
    try:
        with build_opener(_NoRedirect, *proxies).open(request, timeout=_PATIENCE_SECONDS) as answer:
            listed = json.loads(answer.read(_MAX_LIST_BYTES))
        names = _strictly_named(listed) if strictly else [entry["id"] for entry in listed["data"]]
    except HTTPError as error:
        error.close()
        raise ModelServerError(
            f"The model server at {shown} refused to list its models (status {error.code})."
        ) from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise ModelServerError(
            f"No model server answers at {shown} ({reason}). Start it or correct the address."
        ) from None
    except (ValueError, LookupError, TypeError, HTTPException):
        raise ModelServerError(
            f"What answers at {shown} does not list models as an OpenAI-compatible server does."
        ) from None
    return [name for name in names if isinstance(name, str) and name]


def _strictly_named(listed: Any) -> list[str]:
    """The names in a list of models that says of itself and of each entry what it is; raises `ValueError`."""
    if listed["object"] != "list" or any(entry["object"] != "model" for entry in listed["data"]):
        raise ValueError("not a list of models")
    return [entry["id"] for entry in listed["data"]]


def shown_address(url: str) -> str:
    """The address without what may be secret in it."""
    parts = parts_of_address(url)
    if parts is None or not parts.netloc:
        return re.sub(r".*@|[?#].*", "", url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _offered(environment: Mapping[str, str]) -> Iterator[Candidate]:
    """What the environment offers, the first choice first; a server is asked when its turn comes."""
    key, base_url = environment.get("OPENAI_API_KEY", "").strip(), environment.get("OPENAI_BASE_URL", "").strip()
    if base_url and (parts_of_address(base_url) or urlsplit("")).hostname != "api.openai.com":
        yield _of_server(OPENAI, "OPENAI_BASE_URL", base_url, key)
    elif key:
        yield _of_provider(OPENAI, "OPENAI_API_KEY")
    for provider in (ANTHROPIC, GOOGLE, OPENROUTER):
        if (variable := _first_set((*KEYS[provider], *SERVERS.get(provider, ())), environment)) is not None:
            yield _of_provider(provider, variable)
    if (variable := _first_set(SERVERS[OLLAMA], environment)) is not None:
        yield _of_server(OLLAMA, variable, ollama_url(environment), environment.get("OLLAMA_API_KEY", "").strip())
    for provider in LOCAL:
        if (variable := _first_set(SERVERS[provider], environment)) is not None:
            yield _of_server(provider, variable, *local_address(provider.prefix, environment))


def _first_set(variables: Iterable[str], environment: Mapping[str, str]) -> str | None:
    return next((name for name in variables if environment.get(name, "").strip()), None)


def _of_provider(provider: Provider, variable: str) -> Candidate:
    model = f"{provider.prefix}:{DEFAULT_MODELS[provider]}"
    problem = None
    if not provider.is_installed:
        problem = f"{variable} is set, but the package for it is not installed: {provider.install}"
    return Candidate(source=f"{variable} is set", model=model, problem=problem)


def _of_server(provider: Provider, variable: str, base_url: str, key: str) -> Candidate:
    """The first model of the server that can talk."""
    source = f"{variable} is {shown_address(base_url)}"
    try:
        return _choice(provider, source, list_models(base_url, key=key))
    except ModelServerError as error:
        return Candidate(source=source, problem=f"{variable}: {error.message}")


def _on_this_machine(addresses: Mapping[Provider, str]) -> list[Candidate]:
    """A model of each server that nobody has named and that answers at its usual address."""
    found = ask_all(_listed, addresses)
    return [
        _choice(provider, f"{_called(provider)} answers at {addresses[provider]}", names)
        for provider, names in found.items()
    ]


def _listed(base_url: str) -> list[str] | None:
    """The models of a server at a usual address; None if something else answers there, or nothing."""
    try:
        return list_models(base_url, strictly=True)
    except ModelServerError:
        return None


def _called(provider: Provider) -> str:
    return "an Ollama" if provider is OLLAMA else LOCAL_SERVERS[provider.prefix].name


def _choice(provider: Provider, source: str, names: list[str]) -> Candidate:
    talking = [name for name in names if not _NO_CHAT.search(name)] or names
    if not talking:
        hint = "Get one with `ollama pull NAME`." if provider is OLLAMA else "Load one there, or name one with --model."
        return Candidate(source=source, problem=f"{source}, but that server has no model. {hint}")
    # A gateway to many models may list anything first.
    usual = DEFAULT_MODELS.get(provider)
    name = usual if usual in talking else talking[0]
    return Candidate(source=source, model=f"{provider.prefix}:{name}")
