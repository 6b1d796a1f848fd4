"""All agents in a table that changes as they do, and below it the last lines of what happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ai_whisperer.cli.telling import shown_line
from ai_whisperer.client import Client
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.notification import Notification

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

_MOST_LINES = 12
_LEAST_LINES = 3
_FRAME_LINES = 6
_WIDTH = 100

Tabulate = Callable[[Sequence[AgentStatus], int], "Table"]
"""Makes a table of agents for a terminal of this width, with a line for each."""


class LiveView:
    """Draws on a terminal. Where there are more agents than lines, those at work are shown, and the rest is counted."""

    def __init__(self, live: Live, tabulate: Tabulate) -> None:
        self._live = live
        self._tabulate = tabulate
        self._statuses: list[AgentStatus] = []
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)

    def say(self, sentence: str) -> None:
        """A sentence that stays, above the table."""
        from rich.text import Text

        self._live.console.print(Text(sentence, style="bold"))

    def tell(self, note: Notification) -> None:
        """A line below the table, if what happened is of interest."""
        line = shown_line(note, width=_WIDTH)
        if line is not None:
            self._lines.append(line)
            self._draw()

    async def look(self, client: Client) -> None:
        """Look at the agents as they are now."""
        self._statuses = await client.list_agents()
        self._draw()

    def _draw(self) -> None:
        self._live.update(self._picture(), refresh=True)

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        size = self._live.console.size
        room = max(2, size.height - _FRAME_LINES)
        shown = _most_interesting(self._statuses, max(1, room - _LEAST_LINES))
        left = len(self._statuses) - len(shown)
        lines = list(self._lines)[-max(1, room - len(shown)) :]
        more = [f"… and {left} more agents", *lines] if left else lines
        return Group(
            self._tabulate(shown, size.width), Text("\n".join(more), style="dim", no_wrap=True, overflow="ellipsis")
        )


def _most_interesting(statuses: Sequence[AgentStatus], count: int) -> Sequence[AgentStatus]:
    if len(statuses) <= count:
        return statuses
    return sorted(statuses, key=lambda status: status.state is not AgentState.ACTIVE)[:count]
