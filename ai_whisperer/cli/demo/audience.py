"""How the demo is watched: as a live table, line by line, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ai_whisperer.cli.fleet import progress, style_of, tokens, waiting
from ai_whisperer.cli.live_view import LiveView
from ai_whisperer.cli.output import Output, console
from ai_whisperer.cli.printable import shortened
from ai_whisperer.cli.telling import shown_line
from ai_whisperer.client import Client
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.notification import Notification

if TYPE_CHECKING:
    from rich.table import Table

_PROGRESS_WIDTH = 40
_OTHER_WIDTH = 61
_WIDTH = 100


class Audience(Protocol):
    """Whoever watches."""

    def say(self, sentence: str) -> None:
        """What the demo does."""

    def tell(self, note: Notification) -> None:
        """What the agents do."""

    async def look(self, client: Client) -> None:
        """Look at the agents as they are now."""


class Quiet:
    """Is told what the demo does, and looks at nothing."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def say(self, sentence: str) -> None:
        if not self._output.as_json:
            self._output.text(sentence)

    def tell(self, note: Notification) -> None:
        """It does not listen."""

    async def look(self, client: Client) -> None:
        """It sees nothing."""


class Reader(Quiet):
    """Reads what happens, line by line."""

    def tell(self, note: Notification) -> None:
        line = shown_line(note, width=_WIDTH)
        if line is not None:
            self._output.text(line)


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
    if headless:
        yield Quiet(output)
    elif not output.is_terminal:
        yield Reader(output)
    else:
        from rich.live import Live

        with Live(console=console(), auto_refresh=False) as live:
            yield LiveView(live, demo_table)
