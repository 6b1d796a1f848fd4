"""The types and words of the page are made from those of the server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ai_whisperer.protocol import typescript

UI = Path(__file__).parents[2] / "ui"


@pytest.mark.parametrize("name", typescript.FILES)
def test_the_types_and_words_of_the_page_are_those_of_the_server(name: str) -> None:
    kept = (UI / "src" / "client" / f"{name}.ts").read_text(encoding="utf-8")
    assert kept == typescript.FILES[name](), "run: make docs"


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({}, "unknown"),
        ({"type": "integer", "default": 0}, "number"),
        ({"$ref": "#/components/schemas/Usage"}, "Usage"),
        ({"enum": ["a", "b"]}, '"a" | "b"'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "Record<string, boolean>"),
    ],
)
def test_a_schema_becomes_a_type(schema: dict[str, object], wanted: str) -> None:
    assert typescript.type_of(schema) == wanted


def test_a_schema_of_a_new_kind_is_not_guessed() -> None:
    with pytest.raises(TypeError, match="prefixItems"):
        typescript.type_of({"type": "tuple", "prefixItems": []})


@pytest.mark.parametrize("folder", [".", "test/chromium"])
def test_the_versions_of_packages_are_kept_without_their_hosts(folder: str) -> None:
    lock = (UI / folder / "package-lock.json").read_text(encoding="utf-8")
    assert "://" not in lock, f"run: npm run lock --prefix ui/{folder}"
    assert lock.count('"integrity": "sha512-') == len(msgspec.json.decode(lock)["packages"]) - 1
