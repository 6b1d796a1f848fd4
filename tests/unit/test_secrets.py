"""Secrets are blotted out of text at one place, and nothing else is."""

from __future__ import annotations

import json
import random
import string
from urllib.parse import quote

import pytest

from ai_whisperer.core.failure_records import failure_from
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.secrets import redacted, redacted_data, redactor, remember_secret

_chance = random.Random(1)


def letters(count: int) -> str:
    return "".join(_chance.choice(string.ascii_letters + string.digits) for _ in range(count - 1)) + "7"


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("Incorrect API key provided: ", f"sk-{letters(48)}", "."),
        ("Incorrect API key provided: ", "sk-abcde************************wxyz", "."),
        ("key ", f"sk-proj-{letters(20)}_{letters(20)}-{letters(4)}", " is wrong"),
        ("(", f"sk-ant-api03-{letters(90)}", ")"),
        ("'", f"sk-or-v1-{letters(64)}", "'"),
        ("", f"AIza{letters(35)}", ""),
        ("clone with ", f"ghp_{letters(36)}", ""),
        ("", f"github_pat_{letters(22)}_{letters(59)}", " expired"),
        ("", f"gsk_{letters(52)}", ""),
        ("", f"hf_{letters(34)}", ""),
        ("slack said ", f"xoxb-123456789012-{letters(24)}", " no"),
        ("", "AKIAIOSFODNN7EXAMPLE", ""),
        ("pay ", f"sk_live_{letters(24)}", ""),
        ("", f"eyJ{letters(30)}.eyJ{letters(60)}.{letters(43)}", ""),
        ("Bearer ", letters(12), " was refused"),
        ("authorization: Bearer ", letters(12), "\r\nhost: x"),
        ("Authorization: Basic ", "dXNlcjpwYXNzd29yZA==", ""),
        ("{'Authorization': '", letters(12), "'}"),
        ('{"authorization": "Bearer ', letters(12), '"}'),
        ('{\\"authorization\\": \\"Bearer ', letters(12), '\\"}'),
        ("x-api-key: ", letters(12), "\nnext"),
        ("api_key=", letters(12), ", model=x"),
        ("ready ws://127.0.0.1:8642/ws?token=", letters(6), ""),
        ("GET /ws?a=1&token=", letters(12), "&b=2 HTTP/1.1"),
        ("GET https://host/v1?key=", letters(12), "#x"),
        ("WHISPERER_TOKEN=", letters(12), " was set"),
        ("password=", letters(12), ""),
        ("https://", f"user:{letters(9)}", "@host/path"),
        ("postgres://", f"user:p@{letters(9)}", "@host:5432/db"),
        ("https://", letters(12), "@github.com/x.git"),
    ],
)
def test_what_has_the_form_of_a_secret_is_blotted_out(before: str, secret: str, after: str) -> None:
    assert redacted(f"{before}{secret}{after}") == f"{before}[secret]{after}"


def test_a_private_key_is_blotted_out() -> None:
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{letters(64)}\n{letters(20)}\n-----END RSA PRIVATE KEY-----"
    assert redacted(f"read {key} from disk") == "read [secret] from disk"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The task-0123456789abcdef0123456789 and risk-assessment-2024-of-everything went on.",
        "sk-learn-and-other-libraries are fine",
        "Bearer authentication is needed, with a bearer token.",
        'WWW-Authenticate: Bearer realm="x"',
        "http://localhost:8080/a?b=1&monkey=tail and mail to ada@example.org",
        "https://host/users/@ada and https://host/?q=a@b.example",
        "inputTokens: 12, token: 3, max_tokens=4096, sorted(key=len)",
        "An api key is missing: set OPENAI_API_KEY.",
        "Ünïcödé ✓ \ud800",
    ],
)
def test_other_text_is_left_alone(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "X_SECRET",
        "DB_PASSWORD",
        "WHISPERER_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "my_token",
    ],
)
def test_values_of_variables_with_telling_names_are_blotted_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = f"canary {letters(8)}"
    text = f"It said <{canary}> twice: {canary}"
    assert redacted(text) == text
    monkeypatch.setenv(name, f" {canary}\n")
    assert redacted(text) == "It said <[secret]> twice: [secret]"


def test_each_of_several_tokens_and_the_password_in_an_address_are_blotted_out(monkeypatch: pytest.MonkeyPatch) -> None:
    alice, bob, proxy = letters(10), letters(10), letters(10)
    monkeypatch.setenv("WHISPERER_TOKENS", f"alice={alice},bob={bob}")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{proxy}@proxy:3128")
    assert redacted(f"{alice} {bob} {proxy} alice") == "[secret] [secret] [secret] alice"


def test_short_values_and_names_of_files_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("WHISPERER_TLS_KEY", "/etc/tls/key.pem")
    remember_secret("short")
    assert redacted("none short /etc/tls/key.pem") == "none short /etc/tls/key.pem"


def test_what_is_remembered_is_blotted_out_in_every_spelling() -> None:
    canary = f'{letters(6)}/é"\\{letters(6)}'
    remember_secret(canary)
    for spelling in (canary, quote(canary, safe=""), json.dumps(canary), json.dumps(canary, ensure_ascii=False)):
        assert canary[:6] not in redacted(f"<{spelling}>")


def test_a_secret_that_holds_another_is_hidden_as_a_whole() -> None:
    short = letters(10)
    long = f"{short}-{letters(4)}"
    remember_secret(short)
    remember_secret(long)
    assert redacted(f"{long} {short}") == "[secret] [secret]"


def test_a_redactor_keeps_to_the_environment_that_it_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    redact = redactor()
    monkeypatch.setenv("SOME_TOKEN", "canary-canary")
    assert redact("canary-canary") == "canary-canary"
    assert redactor()("canary-canary") == "[secret]"


def test_data_is_redacted_inside_and_by_its_names() -> None:
    data = {
        "headers": {"Authorization": "x", "X-Api-Key": "y", "accept": "z"},
        "list": [f"sk-{letters(30)}", 1, None, ("Bearer abcdef1",)],
        "token": 7,
        "inputTokens": "many",
    }
    assert redacted_data(data, redactor()) == {
        "headers": {"Authorization": "[secret]", "X-Api-Key": "[secret]", "accept": "z"},
        "list": ["[secret]", 1, None, ["Bearer [secret]"]],
        "token": 7,
        "inputTokens": "many",
    }


@pytest.mark.parametrize(
    "piece",
    [
        "sk-",
        "eyJ-",
        "eyJaaaaaaaaaaaa.",
        "hf_-",
        "://",
        "://a:",
        "authorization: ",
        "bearer ",
        "?a",
        "token=",
        "-----BEGIN ",
    ],
)
def test_hostile_text_takes_no_time_that_rises_with_its_square(piece: str) -> None:
    # A quadratic search would need minutes here.
    assert len(redacted(piece * 200_000)) > 0


def test_a_failure_that_is_kept_holds_no_secret() -> None:
    key = f"sk-{letters(30)}"
    assert failure_from(ModelRefusedError(f"Not {key}.")).message == "Not [secret]."
    assert failure_from(ValueError(f"Not {key}.")).message == "An internal error: ValueError: Not [secret]."
