"""Where the answer of a command goes: to people as text and tables, to programs as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import typer

from ai_whisperer.cli.printable import as_json, one_line, printable, shortened

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

T = TypeVar("T")

_MAX_ALIGNED = 32
"""No cell of a table for a pipe is filled up to more characters than that."""


class Column(NamedTuple, Generic[T]):
    """A column of a table: what stands above it, and what of a record stands in it.

    `whole` is for what people copy, such as ids, `right` for numbers: both are never cut. `style` says how the text of
    a cell looks.
    """

    title: str
    of: Callable[[T], str]
    whole: bool = False
    right: bool = False
    style: Callable[[str], str] | None = None


class Output:
    """The output of one command. With `as_json` it is one JSON document, or a line of JSON for each piece of a stream.

    Without a terminal there are no colours and no frames, and a record of a table is one line.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    @property
    def is_terminal(self) -> bool:
        return sys.stdout.isatty()

    def table(
        self,
        records: Sequence[T],
        columns: Sequence[Column[T]],
        *,
        empty: str = "",
        limit: int | None = None,
        of: Any = None,
    ) -> None:
        """Show records; `empty` is told if there are none, and if there are as many as the limit, that it is one.

        Programs get what the records are `of`, if that is something else.
        """
        if self.as_json:
            self.json(records if of is None else of)
        elif not records:
            self.note(empty)
        else:
            self.rows(records, columns)
            if len(records) == limit:
                self.note(f"No more than {limit} are shown; --limit shows more.")

    def rows(self, records: Sequence[T], columns: Sequence[Column[T]]) -> None:
        """A table for people."""
        if self.is_terminal:
            console().print(rich_table(records, columns))
        else:
            self.text(plain_table(records, columns))

    def details(self, record: Any, facts: Iterable[tuple[str, str]], *, body: str = "") -> None:
        """Show one record: the facts that there are, then its text."""
        if self.as_json:
            self.json(record)
            return
        shown = [(name, one_line(value)) for name, value in facts if value]
        width = max((len(name) for name, _ in shown), default=0)
        self.text("\n".join(f"{name + ':':<{width + 1}} {value}" for name, value in shown))
        if body:
            self.text(f"\n{body}")

    def told(self, record: Any, sentence: str) -> None:
        """What was done: for people in a sentence, for programs the record as it is now."""
        if self.as_json:
            self.json(record)
        else:
            self.text(sentence)

    def json(self, value: Any) -> None:
        """One JSON document on one line; records look as they do on the wire."""
        print(as_json(on_the_wire(value)), flush=True)

    def text(self, text: str) -> None:
        print(printable(text), flush=True)

    def piece(self, text: str) -> None:
        """A part of a text that goes on."""
        print(printable(text), end="", flush=True)

    async def ask(self, question: str) -> None:
        """Go on only if the person says yes."""
        from ai_whisperer.cli.typed_lines import typed_lines

        print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        async with aclosing(typed_lines(sys.stdin)) as lines:
            if (await anext(lines, "")).strip().lower() not in ("y", "yes"):
                raise typer.Abort

    def note(self, sentence: str) -> None:
        """Tell the person something that is not part of the answer."""
        print(printable(sentence), file=sys.stderr, flush=True)


def on_the_wire(value: Any) -> Any:
    """The value as plain data, with the keys that the protocol has."""
    import msgspec

    from ai_whisperer.protocol.wire import wire_type

    if isinstance(value, list | tuple):
        return [on_the_wire(each) for each in value]
    if isinstance(value, dict):
        return {name: on_the_wire(each) for name, each in value.items()}
    if isinstance(value, msgspec.Struct):
        value = msgspec.convert(value, wire_type(type(value)), from_attributes=True)
    return msgspec.to_builtins(value)


def console(*, stderr: bool = False) -> Console:
    """The terminal. What is printed there is text: nothing in it is taken for markup."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def rich_table(records: Iterable[T], columns: Sequence[Column[T]]) -> Table:
    """A table for a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = [[_cell(column, record) for column in columns] for record in records]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        longest = max(len(cell) for cell in (column.title, *(row[place] for row in rows)))
        stays = column.whole or column.right
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=stays,  # where there is little room, rich makes other columns narrow first
            min_width=longest if stays else None,
        )
    for row in rows:
        styles = [column.style(cell) if column.style else "" for cell, column in zip(row, columns, strict=True)]
        table.add_row(
            *(Text(cell, style, no_wrap=True, overflow="ellipsis") for cell, style in zip(row, styles, strict=True))
        )
    return table


def plain_table(records: Iterable[T], columns: Sequence[Column[T]]) -> str:
    """A table for a file or a pipe: a record a line, columns two blanks apart.

    Columns are aligned as far as that takes little room: a long cell does not make the other lines long.
    """
    lines = [[column.title for column in columns], *([_cell(column, each) for column in columns] for each in records)]
    widths = [min(max(len(line[place]) for line in lines), _MAX_ALIGNED) for place in range(len(columns))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in lines
    )


def _cell(column: Column[T], record: T) -> str:
    text = column.of(record)
    return (one_line(text) if column.whole else shortened(text)) or "-"
