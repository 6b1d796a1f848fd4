"""Text that people read uses the words that people search for: `docs/glossary.md` has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

AVOIDED = {
    r"circles?": "cycle",
    r"go(es|ing)? on|went on": "resume, continue",
    r"mend(s|ed|ing)?": "fix",
    r"blacken(s|ed|ing)?|blot(s|ted|ting)?": "redact",
    r"overrul(e|es|ed|ing)|go(es)? over (those|what|it|the setting)": "override",
    r"(your|person's|a|no|the) yes": "approval",
    r"(holders?|tokens?) of the past|late holder": "stale holder; no longer valid",
    r"good no more|(waits?|asks|fires?) no more|any more": "no longer",
    r"of (that|this) name": "with that name, with the same name",
    r"is gone|are gone": "was deleted, has ended, is missing",
    r"handed in": "provided",
    r"(tasks?|mails?|it|they) (is|are|was|were) set aside": "became a dead letter",
    r"in peace": "cleanly",
    r"in vain": "without effect",
    r"anew|afresh": "again",
    r"cannot be had|to be had": "not available",
    r"is none:|that is none": "is not one",
    r"(leave|leaving) [^.]{1,20} away": "leave out",
}
"""Words that text for people avoids, as regular expressions, with what to write instead."""

_PATTERNS = [(re.compile(rf"(?<![\w<])(?:{words})(?!\w)"), use) for words, use in AVOIDED.items()]
_SHOWN_DOCSTRINGS = ("cli/commands", "protocol")
"""Where docstrings are the help of commands, or the documentation of methods."""


def test_text_for_people_uses_the_words_that_people_search_for() -> None:
    complaints = [
        f"{path.relative_to(ROOT)}:{line}: '{found}', write: {use}"
        for path, text in _texts()
        for line, found, use in avoided_in(path, text)
    ]

    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ai_whisperer/core/x.py", 'raise StateError(f"{agent} waits "\n    "in a circle.")\n'),
        ("ai_whisperer/core/x.py", 'message = f"Start it, and {agent} goes on."\n'),
        ("ai_whisperer/cli/commands/x.py", 'async def resume() -> None:\n    """Let it go on."""\n'),
        ("ui/src/views/X.tsx", "return <p>\n  The lock is good no more.\n</p>;\n"),
        ("ui/src/views/x.ts", "const told = `Mend the cause of ${name}.`;\n"),
        ("docs/x.md", "A call waits for your\nyes.\n"),
        ("docs/x.md", "The process died, so it was set aside.\n"),
        ("ai_whisperer/templates/builtin/x.md", "Then go on.\n"),
    ],
)
def test_a_word_that_is_avoided_is_found_wherever_people_read_it(name: str, text: str) -> None:
    assert len(list(avoided_in(ROOT / name, text))) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ai_whisperer/core/x.py", "circle = circles.of(task)  # they go on\n"),
        ("ai_whisperer/core/x.py", 'def of() -> None:\n    """The circle that closes."""\n'),
        ("ui/src/views/X.tsx", "/* it goes on */\nreturn <circle r={3} />; // anew\n"),
        ("docs/x.md", "See `runtime/waiting/cycles.py`.\n"),
        ("docs/x.md", "Tokens are set aside before the request, and what was set aside is settled.\n"),
        ("docs/x.md", "It ends in amendments, and goes to the end.\n"),
    ],
)
def test_names_and_comments_are_left_alone(name: str, text: str) -> None:
    assert not list(avoided_in(ROOT / name, text))


def test_the_texts_of_all_kinds_are_looked_at() -> None:
    kinds = {(path.relative_to(ROOT).parts[0], path.suffix) for path, _ in _texts()}

    assert kinds >= {
        ("README.md", ".md"),
        ("CHANGELOG.md", ".md"),
        ("docs", ".md"),
        ("ui", ".ts"),
        ("ui", ".tsx"),
        ("ai_whisperer", ".py"),
        ("ai_whisperer", ".md"),
    }


def avoided_in(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    """The avoided words in what people read of a file: the line, what is there, and what to write."""
    for line, shown in _shown(path, text):
        words = " ".join(shown.split()).lower()
        for pattern, use in _PATTERNS:
            for found in pattern.finditer(words):
                yield line, found[0], use


def _texts() -> Iterator[tuple[Path, str]]:
    yield ROOT / "README.md", (ROOT / "README.md").read_text()
    yield (
        ROOT / "CHANGELOG.md",
        "".join((ROOT / "CHANGELOG.md").read_text().split("\n## ")[:2]),
    )  # what is released stays
    for folder, suffixes in (("docs", {".md"}), ("ui/src", {".ts", ".tsx"}), ("ai_whisperer", {".py", ".md", ".yaml"})):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path, path.read_text()


def _shown(path: Path, text: str) -> Iterator[tuple[int, str]]:
    if path.suffix == ".py":
        yield from _literals(
            ast.parse(text), with_docstrings=any(each in path.as_posix() for each in _SHOWN_DOCSTRINGS)
        )
    else:
        yield from _paragraphs(_without_code(text) if path.suffix == ".md" else _without_comments(text))


def _literals(tree: ast.Module, *, with_docstrings: bool) -> Iterator[tuple[int, str]]:
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(each) for each in node.values)
            yield (
                node.lineno,
                "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values),
            )
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and not with_docstrings:
            parts.add(id(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    line = 1
    for paragraph in text.split("\n\n"):
        yield line, paragraph
        line += paragraph.count("\n") + 2


def _without_code(markdown: str) -> str:
    return re.sub(r"`[^`\n]+`", "…", markdown)


def _without_comments(typescript: str) -> str:
    """The text without comments, its lines where they were."""
    blank = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), typescript, flags=re.DOTALL)
    return re.sub(r"(?<!:)//.*", "", blank)
