"""`whisperer questions`: what agents ask you."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.arguments import LimitOption, reason_option
from ai_whisperer.cli.calling import Connected, group
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.printable import readable_json
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.errors import InvalidInputError

QuestionId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The id, as `whisperer questions` shows it, or how it begins."),
    IdKind.QUESTION,
]


def register(app: typer.Typer) -> None:
    told = "Show what agents ask you; answer a question, or refuse to."
    group(app, "questions", list_questions, show, answer, refuse, help=told)


async def list_questions(
    call: Connected,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include those that are closed, newest first.")] = False,
    limit: LimitOption = 100,
) -> None:
    """Show the questions that wait for your answer, the oldest first."""
    found = await call.client.list_questions(state=None if everything else QuestionState.PENDING, limit=limit)
    call.output.table(found, QUESTIONS, empty="No agent asks you anything.", limit=limit)


async def show(call: Connected, question: QuestionId) -> None:
    """Show a question with the fields of its answer."""
    from ai_whisperer.core.forms import choices_in_words

    found = await call.client.get_question(question)
    call.output.details(
        found,
        [
            ("question", found.id),
            ("state", found.state),
            ("agent", found.agent_id),
            ("task", found.task_id),
            ("asked", moment(found.asked_at)),
            ("until", moment(found.deadline_at)),
            ("closed", moment(found.decided_at)),
            ("by", found.decided_by or ""),
            ("reason", found.reason),
            ("answer", "" if found.answer is None else readable_json(found.answer)),
        ],
        body="\n".join([found.question, "", *choices_in_words(found.schema)]),
    )


async def answer(
    call: Connected,
    question: QuestionId,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VALUE]...", help="The answer, or NAME=VALUE for each field; else you are asked."),
    ] = None,
) -> None:
    """Answer a question. What does not fit its form is refused, and the question stays open."""
    from ai_whisperer.cli.answering import filled_in
    from ai_whisperer.cli.deciding import can_ask
    from ai_whisperer.core.typed_answers import typed_answer

    found = await call.client.get_question(question)
    if values:
        typed = typed_answer(found.schema, values)
    elif can_ask(call.output):
        call.output.note(f"{found.agent_id} asks: {found.question}")
        filled = await filled_in(found, call.output)
        if filled is None:
            raise typer.Abort
        typed = filled
    else:
        raise InvalidInputError(f"Give the answer, such as NAME=VALUE. Its fields: whisperer questions show {found.id}")
    record = await call.client.answer_question(found.id, typed)
    call.output.told(record, f"{record.agent_id} has your answer: {readable_json(record.answer)}")


async def refuse(
    call: Connected, question: QuestionId, *, reason: Annotated[str, reason_option("the agent is told")] = ""
) -> None:
    """Do not answer a question: the agent is told so, with your reason, and continues."""
    record = await call.client.refuse_question(question, reason=reason)
    call.output.told(record, f"{record.agent_id} is told that you do not want to answer.")


QUESTIONS: Sequence[Column[QuestionRecord]] = (
    Column("QUESTION", lambda each: each.id, whole=True),
    Column("STATE", lambda each: each.state),
    Column("AGENT", lambda each: each.agent_id),
    Column("SINCE", lambda each: moment(each.asked_at)),
    Column("ASKS", lambda each: each.question),
    Column("FIELDS", lambda each: ", ".join(each.schema["properties"])),
)
