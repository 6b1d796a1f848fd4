"""How the demo is watched: as a live table, line by line, or not at all; and its end in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ai_whisperer.cli.fleet import progress, style_of, tokens, waiting
from ai_whisperer.cli.live_view import LiveView
from ai_whisperer.cli.output import Output, console
from ai_whisperer.cli.printable import shortened
from ai_whisperer.cli.telling import shown_line
from ai_whisperer.client import Client
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.notification import Notification
from ai_whisperer.examples.account import Account
from ai_whisperer.examples.demo import Audience

if TYPE_CHECKING:
    from rich.table import Table

_PROGRESS_WIDTH = 40
_OTHER_WIDTH = 61
_WIDTH = 100
_FAILURES_SHOWN = 5


class Reader:
    """Reads what the demo does and, unless it is `quiet`, what happens, line by line."""

    def __init__(self, output: Output, *, quiet: bool) -> None:
        self._output = output
        self._quiet = quiet

    def say(self, sentence: str) -> None:
        if not self._output.as_json:
            self._output.text(sentence)

    def tell(self, note: Notification) -> None:
        line = None if self._quiet else shown_line(note, width=_WIDTH)
        if line is not None:
            self._output.text(line)

    async def look(self, client: Client) -> None:
        """It sees no table."""


def demo_table(statuses: Sequence[AgentStatus], width: int) -> Table:
    """A table whose columns do not move while one looks at it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    rest = min(_PROGRESS_WIDTH, max(0, width - _OTHER_WIDTH))
    for title, wide in (("AGENT", 10), ("STATE", 8), ("TASK", 15), ("PROGRESS", rest)):
        table.add_column(title, width=wide, no_wrap=True, overflow="ellipsis")
    for title, wide in (("QUEUE", 5), ("TOKENS", 7)):
        table.add_column(title, width=wide, no_wrap=True, justify="right")
    for status in statuses:
        cells = (
            status.agent_id,
            Text(status.state, style=style_of(status.state)),
            status.current_task or "",
            shortened(progress(status) or waiting(status)),
            str(status.queue_size or ""),
            tokens(status.usage),
        )
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells))
    return table


@contextmanager
def audience_of(output: Output, *, headless: bool) -> Iterator[Audience]:
    """Whoever watches where the output goes."""
    if headless or not output.is_terminal:
        yield Reader(output, quiet=headless)
    else:
        from rich.live import Live

        with Live(console=console(), auto_refresh=False) as live:
            yield LiveView(live, demo_table)


def summary(account: Account) -> str:
    """What has come of it, then the figures."""
    return "\n".join([*_results(account), "", *_figures(account)])


def _results(account: Account) -> Iterator[str]:
    for name, result in account.results.items():
        yield ""
        yield f"{name}:"
        yield from (f"  {line}".rstrip() for line in (result or "There is no result.").splitlines())


def _figures(account: Account) -> Iterator[str]:
    yield from (f"failed: {shortened(failure)}" for failure in account.failed[:_FAILURES_SHOWN])
    if len(account.failed) > _FAILURES_SHOWN:
        yield f"failed: {len(account.failed) - _FAILURES_SHOWN} more"
    cost = "at a cost that is not known" if account.cost_usd is None else f"at a cost of ${account.cost_usd:.4f}"
    unfinished = f" ({account.unfinished} not finished)" if account.unfinished else ""
    yield (
        f"{account.completed} of {account.tasks} tasks completed{unfinished}, {account.mails} mails, "
        f"{account.model_requests} model requests, {account.tool_calls} tool calls, {account.tokens:,} tokens {cost}."
    )
    if account.plug_pulled:
        yield (
            f"When the plug was pulled, {account.finished_before} steps were finished: {account.repeated} of them were "
            f"done again, {account.lost} tasks, mails and steps were lost. {account.begun_anew} steps were in "
            "progress and were repeated."
        )
    else:
        yield "The plug was not pulled: there was too little left to do."
