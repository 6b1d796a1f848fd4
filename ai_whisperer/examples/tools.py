"""Tools that the workflows of the user guide need beside those that every agent has."""

from __future__ import annotations

import ast
import asyncio
import csv
import re
from collections import Counter
from importlib import resources

from ai_whisperer import tool

_READING_SECONDS = 0.3


@tool(idempotent=True, optional=True)
async def read_feedback() -> str:
    """Count the ratings in the customers' feedback, and quote it."""
    await asyncio.sleep(_READING_SECONDS)
    text = (resources.files("ai_whisperer.examples") / "feedback.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    tones = Counter("good" if int(row["rating"]) > 3 else "bad" if int(row["rating"]) < 3 else "mixed" for row in rows)
    average = sum(int(row["rating"]) for row in rows) / len(rows)
    figures = (
        f"{len(rows)} comments, average rating {average:.2f}: "
        f"{tones['good']} good, {tones['mixed']} mixed, {tones['bad']} bad."
    )
    return "\n".join([figures, *(f"{row['rating']} of 5: {row['comment']}" for row in rows)])


@tool(idempotent=True, optional=True)
async def combine_and_test(parts: list[str]) -> str:
    """Put parts of a Python module together, test that they make one, and return the verdict with the module."""
    module = "\n\n\n".join(part.strip() for part in parts)
    try:
        names = [node.name for node in ast.parse(module).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"FAILED: {error}.\n\n{_fenced(module)}"
    if len(names) != len(set(names)):
        return f"FAILED: two functions have the same name ({', '.join(names)}).\n\n{_fenced(module)}"
    return f"Passed: one module with {', '.join(names)}.\n\n{_fenced(module)}"


def _fenced(code: str) -> str:
    """Code as Markdown shows it: in its lines and with its indentation."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    return f"{fence}python\n{code}\n{fence}"


TOOLS = (read_feedback, combine_and_test)
"""What a server needs to run all workflows."""
