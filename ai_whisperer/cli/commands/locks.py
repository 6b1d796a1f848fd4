"""`whisperer lock`: who has which lock; take, keep, give back, break and check one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.calling import Call, command, group
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.locks import LockSummary
from ai_whisperer.errors import LockNotHeldError

LockName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the lock.")]
Token = Annotated[int, typer.Argument(metavar="TOKEN", help="The token that came with the lock.")]
Lease = Annotated[float, typer.Option("--ttl", metavar="SECONDS", help="How long the lease lasts.")]


def register(app: typer.Typer) -> None:
    below = group(app, "lock", help="Show who has which lock; take, renew, release, break or check one.")(list_locks)
    command(below)(acquire)
    command(below)(renew)
    command(below)(release)
    command(below, "break")(break_lock)
    command(below)(check)


async def list_locks(call: Call) -> None:
    """Show the locks that are held, by whom, and who waits for them."""
    async with call.server() as client:
        held = await client.list_locks()
    call.output.table(held, LOCKS, empty="No lock is held.")


async def acquire(
    call: Call,
    name: LockName,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND …]", help="Run this while the lock is held, then release it."),
    ] = None,
    *,
    ttl: Lease = 60.0,
    wait: Annotated[float, typer.Option("--wait", metavar="SECONDS", help="How long to wait for it.")] = 0.0,
    holder: Annotated[str | None, typer.Option("--as", metavar="TEXT", help="What others see of who has it.")] = None,
) -> int:
    """Take a lock. With a command it is held, and renewed, as long as the command runs, and given back at its end.

    Ends with what the command ended with, or with 1 if the lock could not be had or was lost.
    """
    from ai_whisperer.cli.holding import run_while_held

    async with call.server() as client:
        lock = await client.acquire_lock(name, ttl_seconds=ttl, wait_seconds=wait, holder=holder)
        if command:
            return await run_while_held(client, lock, command, ttl_seconds=ttl)
    call.output.told(lock, f"{lock.holder} holds '{name}' with token {lock.token} until {moment(lock.expires_at)}.")
    return 0


async def renew(call: Call, name: LockName, token: Token, *, ttl: Lease = 60.0) -> None:
    """Let a lease last for longer: so many seconds from now on."""
    async with call.server() as client:
        lock = await client.renew_lock(name, token, ttl)
    call.output.told(lock, f"{lock.holder} holds '{name}' with token {lock.token} until {moment(lock.expires_at)}.")


async def release(call: Call, name: LockName, token: Token) -> None:
    """Give a lock back: the first that waits has it."""
    async with call.server() as client:
        lock = await client.release_lock(name, token)
    call.output.told(lock, f"Lock '{name}' was released.")


async def break_lock(
    call: Call,
    name: LockName,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the old holder is told.")] = "",
) -> None:
    """Take a lock from whoever holds it: the first that waits has it."""
    async with call.server() as client:
        lock = await client.break_lock(name, reason)
    call.output.told(lock, f"Lock '{name}' was taken from {lock.holder}, whose token {lock.token} is no longer valid.")


async def check(call: Call, name: LockName, token: Token) -> None:
    """Tell whether a token is the current one of a lock; ends with 1 if it is not."""
    async with call.server() as client:
        found = await client.check_lock(name, token)
    if not found.is_current and not call.output.as_json:
        raise LockNotHeldError(found.told)
    call.output.told(found, found.told)
    if not found.is_current:
        raise typer.Exit(1)


LOCKS: Sequence[Column[LockSummary]] = (
    Column("LOCK", lambda each: each.name, whole=True),
    Column("HELD BY", lambda each: each.holder or "", whole=True),
    Column("TASK", lambda each: each.task_id or "", whole=True),
    Column("SINCE", lambda each: moment(each.acquired_at)),
    Column("UNTIL", lambda each: moment(each.expires_at)),
    Column("TOKEN", lambda each: str(each.token), right=True),
    Column("WAITING", lambda each: ", ".join(waiting.waiter for waiting in each.waiting)),
)
