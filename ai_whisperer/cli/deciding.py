"""Asks the person at the terminal whether a tool call may run, or what an agent wants to know."""

from __future__ import annotations

import sys

import typer

from ai_whisperer.cli.answering import answer
from ai_whisperer.cli.output import Output
from ai_whisperer.cli.printable import printable, readable_arguments
from ai_whisperer.client import Client
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.questions import QuestionAsked
from ai_whisperer.errors import StateError


def can_ask(output: Output) -> bool:
    """Whether there is a person who can be asked."""
    return output.is_terminal and not output.as_json and sys.stdin.isatty()


async def settle(client: Client, output: Output, note: Notification) -> None:
    """Ask the person about the tool call, or for the answer to the question, that the notification tells of."""
    if note.name == QuestionAsked.wire_name:
        await answer(client, output, note.params["questionId"])
    else:
        await decide(client, output, note.params["approvalId"])


async def decide(client: Client, output: Output, approval_id: str) -> None:
    """Show the call and do as the person says. The yes is for what was shown, and for nothing else."""
    approval = await client.get_approval(approval_id)
    output.note(f"{printable(approval.agent_id)} wants to call {approval.tool} with")
    output.note(readable_arguments(approval.arguments))
    try:
        try:
            await output.ask("Allow it?")
        except typer.Abort:
            await client.refuse(approval.id, reason="The person at the terminal said no.")
        else:
            await client.approve(approval.id, digest=approval.digest)
    except StateError as error:
        output.note(error.message)  # somebody else was faster, or the task has ended
