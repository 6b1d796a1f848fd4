"""`whisperer lock`: who has which lock; take, keep, give back, break and check one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.arguments import reason_option, seconds_option
from ai_whisperer.cli.calling import Call, Connected, group
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.locks import LockRecord, LockSummary
from ai_whisperer.errors import LockNotHeldError

LockName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the lock.")]
Token = Annotated[int, typer.Argument(metavar="TOKEN", help="The token that came with the lock.")]
Lease = Annotated[float, seconds_option("--ttl", help="How long the lease lasts.")]


def register(app: typer.Typer) -> None:
    told = "Show who has which lock; take, renew, release, break or check one."
    group(app, "lock", list_locks, acquire, renew, release, break_lock, check, help=told)


async def list_locks(call: Connected) -> None:
    """Show the locks that are held, by whom, and who waits for them."""
    call.output.table(await call.client.list_locks(), LOCKS, empty="No lock is held.")


async def acquire(
    call: Connected,
    name: LockName,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND …]", help="Run this while the lock is held, then release it."),
    ] = None,
    *,
    ttl: Lease = 60.0,
    wait: Annotated[float, seconds_option("--wait", help="How long to wait for it.")] = 0.0,
    holder: Annotated[str | None, typer.Option("--as", metavar="TEXT", help="What others see of who has it.")] = None,
) -> int:
    """Take a lock. With a command it is held, and renewed, as long as the command runs, and given back at its end.

    Ends with what the command ended with, or with 1 if the lock could not be had or was lost.
    """
    from ai_whisperer.cli.holding import run_while_held

    lock = await call.client.acquire_lock(name, ttl_seconds=ttl, wait_seconds=wait, holder=holder)
    if command:
        return await run_while_held(call.client, lock, command, ttl_seconds=ttl)
    _tell_held(call, lock)
    return 0


async def renew(call: Connected, name: LockName, token: Token, *, ttl: Lease = 60.0) -> None:
    """Let a lease last for longer: so many seconds from now on."""
    _tell_held(call, await call.client.renew_lock(name, token, ttl))


def _tell_held(call: Call, lock: LockRecord) -> None:
    until = moment(lock.expires_at)
    call.output.told(lock, f"{lock.holder} holds '{lock.name}' with token {lock.token} until {until}.")


async def release(call: Connected, name: LockName, token: Token) -> None:
    """Give a lock back: the first that waits has it."""
    lock = await call.client.release_lock(name, token)
    call.output.told(lock, f"Lock '{name}' was released.")


async def break_lock(
    call: Connected, name: LockName, *, reason: Annotated[str, reason_option("the old holder is told")] = ""
) -> None:
    """Take a lock from whoever holds it: the first that waits has it."""
    lock = await call.client.break_lock(name, reason)
    call.output.told(lock, f"Lock '{name}' was taken from {lock.holder}, whose token {lock.token} is no longer valid.")


async def check(call: Connected, name: LockName, token: Token) -> None:
    """Tell whether a token is the current one of a lock; ends with 1 if it is not."""
    found = await call.client.check_lock(name, token)
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
