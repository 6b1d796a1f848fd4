"""`whisperer cluster up`, `scale` and `down`: nodes that Ray runs."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from ai_whisperer.cli.calling import SERVING, Call
from ai_whisperer.cluster.ray.chores import SILENT_SECONDS, is_name, names_of
from ai_whisperer.cluster.ray.launch import OF_EACH_NODE, Launch, settings_for_nodes
from ai_whisperer.domain.cluster import NodeState, RayStatus
from ai_whisperer.domain.nodes import RunNode
from ai_whisperer.errors import InvalidInputError, RayError, StateError, StoreError
from ai_whisperer.settings import Settings
from ai_whisperer.store.postgresql.addresses import EXAMPLE, checked_address

if TYPE_CHECKING:
    from ai_whisperer.cluster.ray.crew import RayCrew
    from ai_whisperer.cluster.ray.keeping import Crew
    from ai_whisperer.store.postgresql.launching import LaunchBook

OF_ALL_NODES: Final = ("store", *(name for name in SERVING if name not in OF_EACH_NODE))
"""The settings that `up` takes: those of a server, without those that differ from node to node."""
_PATIENCE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2
_LOOKS_BETWEEN_QUESTIONS: Final = 15
_DEATHS: Final = 3
"""A node that died so often while it was waited for is not waited for any longer."""
_SECRET_BYTES: Final = 24
_MOST: Final = 1_000
_BOUNDS: Final = re.compile(r"(?P<least>[0-9]{1,4})((\.\.|-)(?P<most>[0-9]{1,4}))?")
_WAITING: Final = (
    "The others wait for room in Ray, or are about to end. One that is never there may lack AI Whisperer on its "
    "machine: look at `ray status` and the logs of Ray."
)


HOW_MANY: Final = "How many nodes: a number, or the least and the most (2..6), between which their load decides."


class RunNodes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many nodes there are to be, and those that have joined; `trouble` is why others have not."""

    wanted: int
    least: int
    most: int
    nodes: Sequence[RunNode]
    trouble: str = ""


async def up(
    call: Call,
    *,
    ray: Annotated[
        str, typer.Option("--ray", metavar="HOST:PORT", help="The head of Ray, on whose machines nodes run.")
    ],
    hosts: Annotated[str, typer.Option("--hosts", metavar="NUMBER", help=HOW_MANY)],
    cpus: Annotated[
        float, typer.Option("--cpus", metavar="NUMBER", min=0, help="Processors that Ray counts for each node.")
    ] = 1.0,
    sessions_per_node: Annotated[
        int,
        typer.Option(
            "--sessions-per-node",
            metavar="NUMBER",
            min=1,
            help="More sessions than this lead to more nodes, up to the most.",
        ),
    ] = 100,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="FOLDER", help="On each machine: the data folders of its nodes are below it."),
    ] = None,
    accept_open_ray: Annotated[
        bool, typer.Option("--accept-open-ray", help="Use a Ray that asks nobody for a token, and runs anybody's code.")
    ] = False,
) -> None:
    """Let Ray run so many nodes, with these settings, and wait until they have joined. Again: bring everything back.

    Ray places each on a machine, starts it again when it dies, and elsewhere when its machine does. Run this on a
    machine that Ray has. Settings hold for nodes that are started from now on; drain one to have it started anew.
    """
    from ai_whisperer.cluster.ray import connecting

    store = _store(call)
    least, most = bounds(hosts)
    async with _book(store) as book:
        connecting.check(ray, is_open_accepted=accept_open_ray)
        former = await book.ray()
        if former is not None and former.address != ray and not is_silent(former):
            raise StateError(
                f"The nodes of this database are run by the Ray at {former.address}. End those first: whisperer "
                "cluster down"
            )
        cluster_id, _ = await book.cluster()
        settings = settings_for_nodes(call.settings)
        settings.setdefault("token", _former_token(await book.launch()) or secrets.token_urlsafe(_SECRET_BYTES))
        launch = Launch(cluster_id=cluster_id, settings=settings, folder=folder, cpus=cpus)
        await book.want(least, most)
        await book.order(ray, msgspec.json.encode(launch).decode(), sessions_each=sessions_per_node)
        with ExitStack() as stack:
            crew = _crew(stack, ray, store, launch)
            await asyncio.to_thread(crew.keep, ray)
            _tell(call, await _joined(book, crew), settings["token"])


async def scale(call: Call, hosts: Annotated[str, typer.Argument(metavar="NUMBER", help=HOW_MANY)]) -> None:
    """Let there be so many nodes, and wait until it is so. One that is too many is drained before it is ended."""
    least, most = bounds(hosts)
    async with _book(_store(call)) as book:
        ray = _running(await book.ray())
        await book.want(least, most)
        if is_silent(ray):
            raise RayError(f"It will be {hosts} nodes once Ray is back. {silence(ray)}")
        _tell(call, await _joined(book), _former_token(await book.launch()))


async def down(call: Call) -> None:
    """Drain and end all nodes that Ray runs. What is in the database stays, and `up` goes on with it."""
    from ai_whisperer.cluster.ray import connecting
    from ai_whisperer.cluster.ray.keeping import NoCrew

    store = _store(call)
    async with _book(store) as book:
        ray = _running(await book.ray())
        launch = msgspec.json.decode(await book.launch(), type=Launch)
        await book.want(0, 0)
        with ExitStack() as stack:
            crew: Crew = NoCrew()
            try:
                connecting.check(ray.address, is_open_accepted=True)
                found = _crew(stack, ray.address, store, launch)
                await asyncio.to_thread(found.dismiss_keeper)
                crew = found
            except RayError:
                if not await _falls_silent(book):
                    raise  # its keeper lives, and would stay
            await _end_all(book, crew, launch)
        await book.order("", msgspec.json.encode(launch).decode())
    call.output.told(RunNodes(wanted=0, least=0, most=0, nodes=()), "All nodes that Ray ran have ended.")


async def _falls_silent(book: LaunchBook) -> bool:
    """Whether Ray is not heard of any more, after as long as it takes to be sure."""
    for _ in range(int(SILENT_SECONDS / _LOOK_SECONDS) + 2):
        ray = await book.ray()
        if ray is None or is_silent(ray):
            return True
        await asyncio.sleep(_LOOK_SECONDS)
    return False


async def _end_all(book: LaunchBook, crew: Crew, launch: Launch) -> None:
    """Drain and end all nodes; raises a `StateError` if one does not let its sessions go."""
    from ai_whisperer.cluster.ray.keeping import Hands

    hands = Hands(book, crew)
    grace_seconds = float(launch.settings.get("shutdown_grace_seconds", Settings().shutdown_grace_seconds))
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS + grace_seconds):
            while not await hands.do(0, await asyncio.to_thread(crew.names)):  # noqa: ASYNC110 - others end
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        left = [each.name for each in await book.run_nodes() if is_name(each.name)]
        raise StateError(
            f"These nodes have not let go of their sessions yet: {', '.join(left)}. Look at them (whisperer cluster "
            "status), end a process that does not answer, and repeat: whisperer cluster down"
        ) from None


def bounds(text: str) -> tuple[int, int]:
    """The least and the most of `2..6`, or of `3`, which is both."""
    matched = _BOUNDS.fullmatch(text.strip())
    least, most = (0, 0) if matched is None else (int(matched["least"]), int(matched["most"] or matched["least"]))
    if not 1 <= least <= most <= _MOST:
        raise InvalidInputError(
            f"{text!r} is no number of nodes. Write one from 1 to {_MOST:,}, or the least and the most: 2..6"
        )
    return least, most


def is_silent(ray: RayStatus) -> bool:
    return ray.silent_seconds > SILENT_SECONDS


def choice(ray: RayStatus) -> str:
    """How many nodes there are to be, and why."""
    between = "" if ray.least == ray.most else f", of {ray.least} to {ray.most}"
    nodes = "1 node" if ray.wanted == 1 else f"{ray.wanted} nodes"
    return f"The Ray at {ray.address} is to run {nodes}{between}{f': {ray.why}' if ray.why else ''}."


def silence(ray: RayStatus) -> str:
    """What a person should know of a Ray that is not heard of."""
    return (
        f"The Ray at {ray.address} was last heard of {ray.silent_seconds:,.0f} s ago: the nodes that live continue "
        "with their sessions, and none is started or replaced. If that lasts longer than half a minute, start Ray "
        "again, then: whisperer cluster up"
    )


def _store(call: Call) -> str:
    store = call.settings.values.store
    if store is None:
        raise InvalidInputError(f"Name the database (--store), or set store. Its address looks like {EXAMPLE}.")
    return checked_address(store)


@asynccontextmanager
async def _book(store: str) -> AsyncIterator[LaunchBook]:
    """The book of the nodes, in a database whose tables are up to date."""
    try:
        from ai_whisperer.store.postgresql.checking import migrate
        from ai_whisperer.store.postgresql.launching import LaunchBook
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError("PostgreSQL needs the package asyncpg: pip install 'ai-whisperer[cluster]'") from error
    await migrate(store)
    book = LaunchBook(store)
    try:
        yield book
    except ConnectionError as error:
        raise StoreError(f"The database does not answer ({error}). Try again later.") from error
    finally:
        await book.close()


def _crew(stack: ExitStack, address: str, store: str, launch: Launch) -> RayCrew:
    from ai_whisperer.cluster.ray.connecting import connected
    from ai_whisperer.cluster.ray.crew import RayCrew, namespace_of

    stack.enter_context(connected(address, namespace_of(launch.cluster_id)))
    return RayCrew(store, launch.cluster_id, launch.cpus)


def _running(ray: RayStatus | None) -> RayStatus:
    if ray is None:
        raise StateError(
            "Ray runs no nodes of this database. Let it: whisperer cluster up --ray HOST:PORT --hosts NUMBER"
        )
    return ray


async def _joined(book: LaunchBook, crew: RayCrew | None = None) -> RunNodes:
    """Wait until there are exactly those nodes that there are to be, or a while; raises a `RayError` if one dies."""
    for look in range(int(_PATIENCE_SECONDS / _LOOK_SECONDS)):
        ray = _running(await book.ray())
        names = set(names_of(ray.wanted))
        nodes = [each for each in await book.run_nodes() if is_name(each.name) and each.has_lock]
        joined = [each for each in nodes if each.state is NodeState.JOINED]
        found = RunNodes(wanted=ray.wanted, least=ray.least, most=ray.most, nodes=joined)
        if {each.name for each in nodes} == {each.name for each in joined} == names:
            return found
        if crew is not None and look % _LOOKS_BETWEEN_QUESTIONS == _LOOKS_BETWEEN_QUESTIONS - 1:
            missing = names - {each.name for each in joined}
            await asyncio.to_thread(_check_lives, crew, sorted(missing))
        await asyncio.sleep(_LOOK_SECONDS)
    return msgspec.structs.replace(found, trouble=_WAITING)


def _check_lives(crew: RayCrew, names: Sequence[str]) -> None:
    for name in names:
        status = crew.status(name)
        if status is not None and status.deaths >= _DEATHS:
            raise RayError(
                f"'{name}' does not start, and is tried again and again: {status.last_words} Correct that and repeat "
                "this, or: whisperer cluster down"
            )


def _former_token(launch: str) -> str | None:
    """The token that the nodes have, if they were started before."""
    return str(msgspec.json.decode(launch, type=Launch).settings["token"]) if launch else None


def _tell(call: Call, found: RunNodes, token: str | None) -> None:
    pages = [f"  {each.name}  {each.address}/?token={token}" for each in found.nodes]
    told = f"{len(found.nodes)} of {found.wanted} nodes have joined:" if found.nodes else "No node has joined."
    call.output.told(found, "\n".join([told, *pages, *([found.trouble] if found.trouble else [])]))
