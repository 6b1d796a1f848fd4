"""The one place where secrets are blotted out of text that is kept, logged or shown.

Known are the values that were remembered, the values of environment variables with telling names, and whatever has the
form of a key, a token or a password. What models say and people write is theirs, and does not pass through here on its
way into the store; errors from outside and lines of logs do.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from ai_whisperer.late_pattern import late_pattern

HIDDEN = "[secret]"
"""What stands in the place of a secret."""

_MIN_LENGTH = 8
"""Shorter values are left alone: blotting them out would spoil the text and hide nothing."""

_SECRET_VARIABLES = ("_KEY", "_TOKEN", "_TOKENS", "_SECRET", "_PASSWORD", "_PASSPHRASE")
_URL_VARIABLES = ("_URL", "_PROXY", "_DSN", "_URI")
_PLAIN_VARIABLES = {"WHISPERER_TLS_KEY"}  # the name of a file
_SECRET_NAME = late_pattern(
    r".*(?:authorization|api[-_]?key|token|secret|password|passphrase|cookie)", re.IGNORECASE | re.DOTALL
)
_URL_PASSWORD = late_pattern(r"://[^/@\s:]*:([^/@\s]+)@")

_FORMS = tuple(
    (hints, late_pattern(form))
    for hints, form in (
        # The lookbehind keeps `task-…` from passing for `sk-…`. It also leaves only one place in a run of such
        # characters where a match can begin: so the time rises with the length of a text, not with its square.
        (("sk-",), r"(?<![\w*-])sk-(?=[\w*-]*[\d*])[\w*-]{16,}"),
        (("_live_", "_test_"), r"\b(?:sk|rk|pk)_(?:live|test)_\w{16,}"),
        (("aiza",), r"AIza[\w-]{30,}"),
        (
            ("gh", "git", "gsk", "hf", "xai", "glpat"),
            r"\b(?:gh[oprsu]|github_pat|gsk|hf|xai|glpat)[_-](?=\w*\d)\w{20,}",
        ),
        (("xox", "xapp"), r"\b(?:xox[a-z]|xapp)-[\w-]{10,}"),
        (("akia", "asia"), r"\bA[KS]IA[0-9A-Z]{16}"),
        (("eyj",), r"(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*"),
        (("private key",), r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"),
        # From here on a group holds what stays.
        (
            ("authorization",),
            r"""((?i:authorization)\\?["']?\s*[:=]\s*\\?["']?(?:(?i:bearer|basic|token|digest)\s+)?)[^\s"'\\,;]+""",
        ),
        (
            ("api-key", "api_key", "apikey"),
            r"""((?i:api[-_]?key)\\?["']?\s*[:=]\s*\\?["']?)[^\s"'\\,;&]{6,}""",
        ),
        (
            ("bearer",),
            r"(\b(?i:bearer)\s+)(?!(?i:auth|token|realm|scheme|credential|format|error))[\w.~+/=-]{6,}",
        ),
        (
            ("token=", "secret=", "password=", "passwd="),
            r"""((?i:token|secret|password|passwd)=)(?=[^\s&"'\\<>;,]{8})[^\s&"'\\<>;,]+""",
        ),
        (
            ("token=", "key=", "secret=", "password=", "sig=", "signature="),
            r"""([?&](?i:[a-z_]*token|key|secret|password|sig|signature)=)[^\s&"'\\<>#]+""",
        ),
        (("://",), r"""(://)[^/\s?#"'\\]+(?=@)"""),
    )
)
"""Well-known forms of secrets. One is looked for only where a hint of it is in the text in small letters."""

_remembered: set[str] = set()


def remember_secret(value: str) -> None:
    """Blot this value out from now on, wherever it came from. One shorter than eight characters is left alone."""
    if len(value.strip()) >= _MIN_LENGTH:
        _remembered.add(value.strip())


def remembered_secrets() -> tuple[str, ...]:
    """What is to be redacted wherever it came from, for another process that does the same."""
    return tuple(sorted(_remembered))


def redacted(text: str) -> str:
    """The text with every known secret replaced by `[secret]`."""
    return redactor()(text)


def redactor() -> Callable[[str], str]:
    """`redacted` for many texts: the environment is looked at once, now."""
    known = _spelled(frozenset(_remembered.union(_secrets_in(os.environ))))

    def redact(text: str) -> str:
        for secret in known:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        small = text.lower()
        for hints, form in _FORMS:
            for hint in hints:
                if hint in small:
                    text = form.sub(_hide, text)
                    break
        return text

    return redact


def redacted_data(data: Any, redact: Callable[[str], str]) -> Any:
    """JSON-like data with every text in it redacted, and every text whose name says that it is a secret hidden."""
    if isinstance(data, str):
        return redact(data)
    if isinstance(data, Mapping):
        return {
            name: HIDDEN
            if isinstance(each, str) and isinstance(name, str) and _SECRET_NAME.fullmatch(name)
            else redacted_data(each, redact)
            for name, each in data.items()
        }
    if isinstance(data, list | tuple):
        return [redacted_data(each, redact) for each in data]
    return data


def _secrets_in(environment: Mapping[str, str]) -> Iterator[str]:
    for name in environment:
        ending = f"_{name.upper()}"
        if ending.endswith(_SECRET_VARIABLES) and name not in _PLAIN_VARIABLES:
            value = environment.get(name, "")
            yield from _parts(value) if ending.endswith("S") else (value,)
        elif ending.endswith(_URL_VARIABLES):
            yield from _URL_PASSWORD.findall(environment.get(name, ""))


def _parts(value: str) -> Iterable[str]:
    """The tokens in `alice=TOKEN,bob=TOKEN`."""
    return (part.partition("=")[2] or part for part in value.split(","))


@lru_cache(maxsize=8)
def _spelled(secrets: frozenset[str]) -> tuple[str, ...]:
    """The secrets in all spellings. Longer ones first, so that one which holds another is hidden as a whole."""
    values = {value.strip() for value in secrets}
    spelled = {spelling for value in values if len(value) >= _MIN_LENGTH for spelling in _spellings(value)}
    return tuple(sorted(spelled, key=lambda each: (-len(each), each)))


def _spellings(value: str) -> Iterator[str]:
    """The value as it is, in a URL, and in JSON."""
    yield value
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]


def _hide(match: re.Match[str]) -> str:
    return (match[match.lastindex] if match.lastindex else "") + HIDDEN
