"""Asks the person at the terminal what an agent wants to know, field by field."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from ai_whisperer.cli.output import Output
from ai_whisperer.cli.printable import printable
from ai_whisperer.cli.typed_lines import typed_lines
from ai_whisperer.client import Client
from ai_whisperer.core.forms import FormField, choices_in_words, expected, fields_of, fitted_answer
from ai_whisperer.core.typed_answers import typed_value
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.errors import AnswerError, StateError


def in_words(question: QuestionRecord) -> str:
    """The question as a person is shown it, with what can be answered."""
    return "\n".join([f"{question.agent_id} asks: {question.question}", *choices_in_words(question.schema)])


async def answer(client: Client, output: Output, question_id: str) -> None:
    """Show the question and send what the person types. Who types nothing at all leaves it open."""
    question = await client.get_question(question_id)
    output.note(f"{question.agent_id} asks: {question.question}")
    try:
        typed = await filled_in(question, output)
        if typed is None:
            output.note(f"It stays open. To answer it: whisperer questions answer {question.id}")
        else:
            await client.answer_question(question.id, typed)
    except StateError as error:
        output.note(error.message)  # somebody else was faster, its time is over, or the task has ended


async def filled_in(question: QuestionRecord, output: Output) -> dict[str, Any] | None:
    """What the person types into the form; None if the input ends before it is full."""
    answer: dict[str, Any] = {}
    async with aclosing(typed_lines(sys.stdin)) as lines:
        for field in fields_of(question.schema):
            value = await _typed(question, field, lines, output)
            if value is _END:
                return None
            if value is not None:
                answer[field.name] = value
    return answer


_END = object()


async def _typed(question: QuestionRecord, field: FormField, lines: AsyncIterator[str], output: Output) -> Any:
    """A value that fits the field, or None if it is left out: the person is asked again until then."""
    alone = {**question.schema, "properties": {field.name: question.schema["properties"][field.name]}}
    alone["required"] = [field.name] if field.required else []
    hint = field.description or field.title
    while True:
        left_out = "" if field.required else ", or nothing"
        name = f"{field.name} ({hint})" if hint else field.name
        print(printable(f"{name}, {expected(field)}{left_out}: "), end="", file=sys.stderr, flush=True)
        line = await anext(lines, None)
        if line is None:
            return _END
        if not line.strip():
            if not field.required:
                return None
            continue
        try:
            return fitted_answer(alone, {field.name: typed_value(field, line)})[field.name]
        except AnswerError as error:
            output.note(error.message)
