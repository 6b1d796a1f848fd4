"""Opening a store that other nodes have too: joining them, in place of a former self if there is one."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from ai_whisperer.cluster import judging
from ai_whisperer.cluster.beating import BEAT_SECONDS, Beating
from ai_whisperer.cluster.clock import ClusterClock
from ai_whisperer.cluster.membership import Member
from ai_whisperer.cluster.sharing import raised_min_version, with_other_settings
from ai_whisperer.domain.nodes import NodeCard, Seen
from ai_whisperer.errors import StoreInUseError, StoreReadOnlyError
from ai_whisperer.store.postgresql.registry import Registry
from ai_whisperer.store.postgresql.store import PostgresqlStore

_FILE: Final = "node"
"""In the data folder: the id of the node that had it last. Whoever has the folder now knows that it is gone."""

_OTHER_SETTINGS: Final = (
    "these nodes have other settings, tools, tokens or another sandbox than this one: %s. Sessions go from one to the "
    "other: give all the same, or these a database of their own if they are to be another cluster"
)
_FOLDER_FILE: Final = "folder"
"""In the data folder: what it is called in the database, where it is kept which sessions have had files in it."""

_log = logging.getLogger(__name__)


async def join(
    address: str,
    card: NodeCard,
    *,
    folder: str | Path | None = None,
    work: Path | None = None,
    patience_seconds: float,
) -> PostgresqlStore:
    """The store at the address, for a new node of its cluster; raises a `StoreError` that says what to do."""
    host_id = secrets.token_hex(8)
    place = None if folder is None else Path(folder)
    desk = Registry(address, host_id)
    try:
        store = await PostgresqlStore.open(
            address,
            folder=place,
            work=work,
            patience_seconds=patience_seconds,
            host_id=host_id,
            enter=partial(_enter, desk, host_id, card, place, has_files=work is None),
        )
    except BaseException:
        await desk.close()
        raise
    if store.placing is None:
        raise TypeError("a store that is shared has claims")
    store.clock = clock = ClusterClock()
    try:
        secret = await desk.secret()
        clock.notice((await desk.look()).clock_ahead)
    except BaseException:
        await store.close()
        await desk.close()
        raise
    store.member = Member(
        host_id,
        card,
        secret=secret,
        clock=clock,
        store=store,
        claims=store.placing,
        desk=desk,
        beating=partial(Beating, Registry(address, host_id, holds_lock=True), Registry(address, host_id), host_id),
    )
    try:
        await store.finish_deletions()  # it beats meanwhile: a large session takes its time
    except BaseException:
        await store.close()
        raise
    return store


async def _enter(desk: Registry, host_id: str, card: NodeCard, folder: Path | None, *, has_files: bool) -> None:
    former = None if folder is None else _former(folder)
    if former is not None and not any(each.id == former and each.has_lock for each in (await desk.look()).nodes):
        await desk.remove(former)  # else the folder is a copy, and its node lives elsewhere
    _, min_version = await desk.cluster()
    others = [each for each in (await desk.look()).nodes if each.name != card.name]
    raised = raised_min_version(card, others, min_version)
    other_settings = with_other_settings(card, others)
    if other_settings:
        _log.warning(_OTHER_SETTINGS, ", ".join(other_settings))
    await _take_name(desk, card, _folder_id(folder) if has_files and folder is not None else "")
    if raised != min_version:
        await desk.raise_min_version(raised)
    if folder is not None:
        _keep(folder, host_id)


async def _take_name(desk: Registry, card: NodeCard, folder_id: str) -> None:
    """Enter the book; a node of the same name that is gone makes room. Raises `StoreInUseError` if it lives."""
    known: judging.Sightings = {}
    first_beats: dict[str, int] = {}
    while not await desk.join(card, folder_id=folder_id):
        seen = await desk.look()
        same = next((each for each in seen.nodes if each.name == card.name), None)
        if same is None:
            continue
        known = judging.looked(known, Seen(nodes=(same,), incarnation=seen.incarnation), own_id="")
        is_known = same.id in first_beats
        if same.beat > first_beats.setdefault(same.id, same.beat) + 1:  # a process that died may have had one under way
            raise StoreInUseError(
                f"There is a node '{card.name}' already{f', at {same.address}' if same.address else ''}. Stop it, or "
                "give this one another name (--node)."
            )
        if known[same.id].is_gone or (is_known and not same.has_lock):
            await desk.remove(same.id, same.beat, has_ended=not same.has_lock)
        else:
            await asyncio.sleep(BEAT_SECONDS)


def _former(folder: Path) -> str | None:
    """The node that had the folder before this process did."""
    with suppress(OSError, UnicodeDecodeError):
        return (folder / _FILE).read_text(encoding="ascii").strip() or None
    return None


def _folder_id(folder: Path) -> str:
    """What the folder is called; made the first time."""
    with suppress(FileNotFoundError, UnicodeDecodeError):
        if known := (folder / _FOLDER_FILE).read_text(encoding="ascii").strip():
            return known
    made = secrets.token_hex(8)
    _keep(folder, made, _FOLDER_FILE)
    return made


def _keep(folder: Path, written: str, name: str = _FILE) -> None:
    draft = folder / f"{name}.{os.getpid()}"
    try:
        draft.write_text(written, encoding="ascii")
        draft.replace(folder / name)
    except OSError as error:
        raise StoreReadOnlyError(f"The data folder '{folder}' cannot be written ({error}).") from error
