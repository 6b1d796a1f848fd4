"""Starting and stopping the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvicorn

from ai_whisperer.cluster.membership import membership_of
from ai_whisperer.domain.tasks import StepRecord
from ai_whisperer.errors import (
    InvalidInputError,
    PortError,
    SandboxError,
    ServerFailedError,
    SettingsError,
    StoreInUseError,
    StoreReadOnlyError,
)
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.models.catalog import NameCheck, check_name, name_check, resolve
from ai_whisperer.models.names import SCRIPTED
from ai_whisperer.runtime.agents.folders import checked_folders, kept_from_agents
from ai_whisperer.runtime.life.store import open_store
from ai_whisperer.sandbox.choosing import ChosenSandbox
from ai_whisperer.sandbox.levels import STRONG
from ai_whisperer.secrets import remember_secret
from ai_whisperer.server import answers  # noqa: F401 - it registers itself
from ai_whisperer.server.address import ADDRESS_FILE, Address, find_address
from ai_whisperer.server.agent_export import export_agents
from ai_whisperer.server.app import Application
from ai_whisperer.server.duties import Duties
from ai_whisperer.server.forking import clear_forks
from ai_whisperer.server.gate import check_binding, own_url
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.http import ClientHttp
from ai_whisperer.server.node_card import card_of
from ai_whisperer.server.pruning import prune_daily
from ai_whisperer.server.socket import ClientSocket
from ai_whisperer.server.work_folder import check_work, work_folder
from ai_whisperer.settings import LOCAL, Settings
from ai_whisperer.store.base import Store
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.tools.function import AnyFunction, as_tools
from ai_whisperer.tools.project_files import load_tool_files, standard_folder
from ai_whisperer.tools.toolbox import ToolBox

if TYPE_CHECKING:
    from ai_whisperer.server.gateway.gateway import Gateway

_KEPT_BY_THE_SYSTEM_BYTES = 64 << 10
"""For a client that does not read. Left to itself the system keeps megabytes, and it takes as long to notice."""

TOOLS_LEFT_OUT = "Tools are left out."
"""How a line of the log begins that says which files of tools are not used, and why."""

LAST_REQUESTS_SECONDS = 3
"""So long requests under way may take when the server leaves."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_log = logging.getLogger(__name__)

_TOKEN_FILE = "token"  # noqa: S105 - the name of a file


class RunningServer:
    """A server that takes requests. `port` is the one it listens on, also where its address is a name without one."""

    def __init__(self, address: Address, host: SessionHost, sandbox: ChosenSandbox, *, port: int) -> None:
        self.address = address
        self._sandbox = sandbox
        self.port = port
        self._host = host

    def warn(self, words: str) -> None:
        """Write a warning to the log of the process."""
        _log.warning("%s", words)

    async def try_sandbox(self) -> None:
        """Find out what holds the programs of agents, before the first of them runs, and write it to the log."""
        try:
            chosen = await self._sandbox.choose()
        except (SandboxError, OSError) as error:
            _log.warning("agents cannot run programs: %s", error)
        else:
            if chosen.name in STRONG:
                _log.info("programs of agents are held by %s", chosen.name)
            else:
                _log.warning(
                    "programs of agents run in '%s', as set, which does not hold them: `whisperer doctor` says what "
                    "they can do",
                    chosen.name,
                )

    def steps_under_way(self) -> Callable[[], Awaitable[list[StepRecord]]]:
        """A look at the steps of the tasks that run now. While the server leaves it can be taken too."""
        return self._host.steps_under_way()

    def unfinished(self) -> dict[str, int]:
        """By agent, how many tasks go on or wait for their turn."""
        return self._host.unfinished()

    async def failure(self) -> BaseException:
        """Wait until the store has failed or no requests are taken any more, and return why: nothing runs any more."""
        return await asyncio.shield(self._host.failed)

    @property
    def ended_by(self) -> BaseException | None:
        """Why nothing runs any more, also if that came about while the server left; None if all went well."""
        return self._host.failure

    async def serve_forever(self, tell_ready: Callable[[], None] = lambda: None) -> None:
        """Serve until SIGINT or SIGTERM; raises what stopped the server if it cannot go on. For the main thread.

        `tell_ready` is called when these signals let it leave cleanly. Who hears of the server earlier could kill it.
        """
        loop = asyncio.get_running_loop()
        asked = loop.create_future()
        for number in _SIGNALS:
            loop.add_signal_handler(number, _resolve, asked)
        try:
            tell_ready()
            await asyncio.wait([asked, self._host.failed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
        if self._host.failed.done():
            raise self._host.failed.result()

    def trouble(self) -> str | None:
        """Why the server does not do what it is there for; None if it does. As `/healthz` says it."""
        return self._host.trouble()


def _resolve(asked: asyncio.Future[None]) -> None:
    if not asked.done():
        asked.set_result(None)


@contextlib.asynccontextmanager
async def running(
    settings: Settings,
    *,
    tools: Iterable[AnyFunction] = (),
    model_factory: ModelFactory = resolve,
    temporary: bool = False,
) -> AsyncIterator[RunningServer]:
    """Serve while the block runs; afterwards steps under way finish and everything is on disk.

    One that is `temporary` says so beside its address: others who use it then know that it may be gone soon.

    Raises a `WhispererError` that says what to do if the folder, the port or a setting cannot be used.
    """
    check_binding(settings)
    toolbox = await asyncio.to_thread(toolbox_of, settings, tools)
    for error in toolbox.errors:
        _log.error("%s %s", TOOLS_LEFT_OUT, error)
    _check_not_served(settings.data)
    check_work(settings)
    listening = listen(settings)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listening.close)
        port = listening.getsockname()[1]
        sandbox = ChosenSandbox(settings.sandbox)
        stack.push_async_callback(sandbox.close)
        level = settings.sandbox if settings.store is None else await _level_of(sandbox)
        store = await open_store(
            settings.data,
            settings.store,
            patience_seconds=settings.store_patience_seconds,
            card=card_of(settings, port=port, tools=toolbox, sandbox=level),
            work=settings.work,
        )
        stack.push_async_callback(store.close)
        clear_forks(settings.data)
        token = settings.token or kept_token(settings.data)
        tokens = {**settings.tokens, LOCAL: token}
        for each in tokens.values():
            remember_secret(each)
        if settings.agent_log is not None:
            stack.callback(export_agents(settings.agent_log, settings))
        templates = templates_of(settings, check_model=name_check(model_factory))
        if not temporary:  # whoever wants one of them is told; others have asked for something else
            await asyncio.to_thread(_tell_broken, templates)
        host = SessionHost(
            store,
            model=settings.model or SCRIPTED,
            templates=templates,
            tools=toolbox,
            mcp_servers=settings.mcp,
            limits=settings.limits,
            model_factory=model_factory,
            sandbox=sandbox,
            work=work_folder(settings),
            folders=folders_of(settings),
            hidden=_hidden(settings),
            create_missing=settings.create_missing,
            claude_folder=settings.claude_folder,
            membership=membership_of(store),
        )
        stack.push_async_callback(host.close, grace_seconds=0)  # for a start that failed half-way
        gateway = gateway_of(host, store, settings)
        if gateway is not None:
            stack.push_async_callback(gateway.close)
        app = Application(host, tokens, settings=settings, port=port, gateway=gateway)
        address = served_address(settings, token, port=port, temporary=temporary)
        await host.start(session_id=settings.session)
        duties = Duties(host, grace_seconds=settings.shutdown_grace_seconds)
        stack.push_async_callback(duties.close)
        if settings.prune_older_than is not None:
            pruning = asyncio.create_task(prune_daily(host, settings.prune_older_than), name="pruning")
            stack.push_async_callback(_ended, pruning)
        async with taking_requests(app, listening, settings, on_failure=host.fail):
            with announced(settings.data, address):
                try:
                    yield RunningServer(address, host, sandbox, port=port)
                finally:
                    await duties.close()
                    await host.close(grace_seconds=settings.shutdown_grace_seconds)


async def _level_of(sandbox: ChosenSandbox) -> str:
    """What holds programs here, which the other nodes are told."""
    with contextlib.suppress(SandboxError, OSError):
        await sandbox.choose()
    return sandbox.name


def gateway_of(host: SessionHost, store: Store, settings: Settings) -> Gateway | None:
    """What passes requests on, if there are other nodes. It is loaded for that: it needs what clients need."""
    if not host.membership.secret:
        return None
    from ai_whisperer.server.gateway.gateway import Gateway

    return Gateway(host, store, settings)


async def _ended(task: asyncio.Task[None]) -> None:
    """End what runs beside the server."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def served_address(settings: Settings, token: str, *, port: int, temporary: bool) -> Address:
    """Where a server with these settings is found while this process serves."""
    return Address(
        url=own_url(settings, port),
        token=token,
        pid=os.getpid(),
        certificate=str(settings.tls_certificate.absolute()) if settings.tls_certificate else None,
        temporary=temporary,
        in_postgresql=settings.store is not None,
    )


def kept_token(data: Path) -> str:
    """The token of the data folder; a random one is made the first time, so that it outlives restarts."""
    path = data / _TOKEN_FILE
    try:
        with contextlib.suppress(FileNotFoundError):
            kept = path.read_text(encoding="ascii").strip()
            if kept:
                return kept
        made = secrets.token_urlsafe(32)
        _write_private(path, made)
    except (OSError, UnicodeDecodeError) as error:
        raise StoreReadOnlyError(
            f"The token in '{path}' cannot be read or written ({error}). Remove the file or choose another data folder."
        ) from error
    return made


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


@contextlib.contextmanager
def announced(data: Path, address: Address) -> Iterator[None]:
    path = data / ADDRESS_FILE
    _write_private(path, msgspec.json.encode(address).decode())
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _check_not_served(data: Path) -> None:
    """Raise `StoreInUseError` if another process serves the folder: its port is taken, too, and would be blamed."""
    address = find_address(data)
    if address is not None and address.pid != os.getpid():
        raise StoreInUseError(
            f"A server (process {address.pid}) serves the data folder '{data}' already, at {address.url}. Use that "
            "one, stop it, or choose another data folder with --data."
        )


def listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, asyncio knows the connections for TCP and has them send at once (TCP_NODELAY).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KEPT_BY_THE_SYSTEM_BYTES)
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise PortError(
            f"Port {settings.port} on {settings.host} cannot be used ({error.strerror or error}). Stop what uses it "
            "or choose another with --port; --port 0 takes a free one."
        ) from error
    listening.setblocking(False)  # noqa: FBT003
    return listening


@contextlib.asynccontextmanager
async def taking_requests(
    app: Application, listening: socket.socket, settings: Settings, *, on_failure: Callable[[BaseException], None]
) -> AsyncIterator[None]:
    """Take requests while the block runs; calls back if they are no longer taken before its end."""
    config = uvicorn.Config(
        app,
        ws=ClientSocket,
        ws_max_size=settings.max_frame_bytes,
        ws_per_message_deflate=False,
        http=ClientHttp,
        proxy_headers=False,
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        timeout_graceful_shutdown=LAST_REQUESTS_SECONDS,
    )
    try:
        config.load()
    except OSError as error:
        raise SettingsError(f"The TLS certificate or its key cannot be used: {error}.") from error
    server = _Uvicorn(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="uvicorn")
    up = asyncio.create_task(server.is_up.wait(), name="uvicorn is up")
    await asyncio.wait([serving, up], return_when=asyncio.FIRST_COMPLETED)
    up.cancel()
    if serving.done():
        await serving  # raises what kept it from starting

    def ended(task: asyncio.Task[None]) -> None:
        if not server.should_exit:
            why = "it was cancelled" if task.cancelled() else task.exception() or "it ended"
            on_failure(ServerFailedError(f"The server takes no more requests ({why}). Start it again."))

    serving.add_done_callback(ended)
    try:
        yield
    finally:
        server.should_exit = True
        (outcome,) = await asyncio.gather(serving, return_exceptions=True)
        if isinstance(outcome, Exception):
            _log.error("the server could not stop taking requests cleanly", exc_info=outcome)


class _Uvicorn(uvicorn.Server):
    """Uvicorn that leaves signals to whoever started it, and tells when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.is_up.set()


def folders_of(settings: Settings) -> dict[str, Path]:
    """The folders that agents of a server with these settings can be granted; raises `SettingsError`."""
    try:
        kept = kept_from_agents(
            [settings.data, work_folder(settings)], hidden=_hidden(settings), templates=templates_of(settings)
        )
        folders = checked_folders(settings.folders, kept=kept)
    except InvalidInputError as error:
        raise SettingsError(f"The setting folders is wrong. {error.message}") from error
    if settings.claude_folder is not None and settings.claude_folder not in folders:
        raise SettingsError(
            f"The setting claude_folder is wrong. It must be a name in the setting folders, not "
            f"'{settings.claude_folder}'. There are: {', '.join(folders) or 'none'}."
        )
    return folders


def _hidden(settings: Settings) -> list[Path]:
    """What is hidden in granted folders, beside the data, the templates and what the current folder has."""
    return [*settings.tools, *(file for file in (settings.tls_key, settings.agent_log) if file is not None)]


def toolbox_of(settings: Settings, provided: Iterable[AnyFunction] = ()) -> ToolBox:
    """The tools that a server with these settings has; raises `SettingsError` if a folder is not there.

    The tool files are run. One that cannot be used is left out, and the box says why.
    """
    for folder in settings.tools:
        if not folder.is_dir():
            raise SettingsError(f"The tools folder '{folder}' is not there. Make it, or correct the setting tools.")
    standard = standard_folder()
    folders = [*settings.tools, *([] if standard is None else [standard])]
    return ToolBox(as_tools(provided), load_tool_files(folder.absolute() for folder in folders))


def _tell_broken(templates: TemplateLibrary) -> None:
    """Say in the log which templates cannot be used, before somebody wants them."""
    for entry in templates.list():
        if entry.error is not None:
            _log.warning("A template cannot be used. %s", entry.error)


def templates_of(settings: Settings, *, check_model: NameCheck | None = check_name) -> TemplateLibrary:
    """The templates that a server with these settings offers; raises `SettingsError` if a folder is not there."""
    for folder in settings.templates:
        if not folder.is_dir():
            raise SettingsError(
                f"The templates folder '{folder}' is not there. Make it, or correct the setting templates."
            )
    standard = TemplateLibrary.standard()
    return TemplateLibrary([*settings.templates, *standard.folders], check_model=check_model)
