"""How the demo is watched: as a live table, line by line, or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ai_whisperer.cli.fleet import progress, style_of, tokens, waiting
from ai_whisperer.cli.output import Output, console
from ai_whisperer.cli.printable import shortened
from ai_whisperer.cli.telling import shown_line
from ai_whisperer.client import Client
from ai_whisperer.records import Notification
from ai_whisperer.status import AgentStatus

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

_PROGRESS_WIDTH = 40
_OTHER_WIDTH = 61
_MOST_LINES = 12
_FRAME_LINES = 6
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


class Watcher:
    """Sees all agents in a table that changes as they do, and the last lines of what happens below it."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._statuses: list[AgentStatus] = []
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)

    def say(self, sentence: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(sentence, style="bold"))

    def tell(self, note: Notification) -> None:
        line = shown_line(note, width=_WIDTH)
        if line is not None:
            self._lines.append(line)
            self._draw()

    async def look(self, client: Client) -> None:
        self._statuses = await client.list_agents()
        self._draw()

    def _draw(self) -> None:
        self._live.update(self._picture(), refresh=True)

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        room = max(2, self._live.console.height - len(self._statuses) - _FRAME_LINES)
        told = Text("\n".join(list(self._lines)[-room:]), style="dim", no_wrap=True, overflow="ellipsis")
        return Group(_table(self._statuses, width=self._live.console.width), told)


def _table(statuses: Sequence[AgentStatus], *, width: int) -> Table:
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
            yield Watcher(live)
