"""Checks of the data folder, its database, the port of its server, and the templates."""

from __future__ import annotations

import json
import socket
import tempfile
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from ai_whisperer.cli.doctor.findings import Finding, ok, problem, warning
from ai_whisperer.cli.doctor.machine import is_there, nearest_existing
from ai_whisperer.client.address import trusting
from ai_whisperer.errors import StoreError, WhispererError
from ai_whisperer.server.address import find_address
from ai_whisperer.settings import Settings
from ai_whisperer.store.folder_lock import FolderLock
from ai_whisperer.store.moved import check_not_moved
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.opening import check_file, database_version, latest_version
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.tools.toolbox import ToolBox

_PATIENCE_SECONDS = 2.0
_OTHERS = 0o077


def check_folder(data: Path) -> Finding:
    """Whether the folder can be used, and who uses it."""
    if not is_there(data):
        above = nearest_existing(data)
        try:
            tempfile.TemporaryDirectory(dir=above).cleanup()
        except OSError as error:
            why = error.strerror or str(error)
            return problem("Data folder", f"'{data}' cannot be created ({why})", "Choose another with --data.")
        return ok("Data folder", f"'{data}' does not exist yet; it is created at the first start")
    try:
        with tempfile.TemporaryFile(dir=data):
            pass
    except OSError as error:
        return problem(
            "Data folder",
            f"'{data}' cannot be written ({error.strerror or error})",
            "Change its permissions, or choose another with --data.",
        )
    holder, address = FolderLock.holder(data), find_address(data)
    if holder is not None:
        served = f", whose server is at {address.url}" if address is not None else ""
        return ok("Data folder", f"'{data}' is used by the process {holder}{served}")
    token = data / "token"
    if is_there(token) and token.stat().st_mode & _OTHERS:
        return warning("Data folder", f"others may read '{token}'", f"chmod 600 '{token}'")
    return ok("Data folder", f"'{data}' can be written, nobody uses it now")


def check_database(data: Path) -> Finding:
    """Whether the database is intact and of a version that is known here."""
    path = data / DATABASE_NAME
    if FolderLock.holder(data) is not None:
        return ok("Database", "open in the process that uses the folder, which has checked it")
    try:
        check_not_moved(data)
        if not is_there(path):
            check_file(path)
            return ok("Database", "there is none yet; it is created at the first start")
        version = database_version(path)
    except (StoreError, OSError) as error:
        return problem("Database", f"'{path}' cannot be used", str(error))
    size = path.stat().st_size / (1 << 20)
    if version < latest_version():
        return ok("Database", f"intact, {size:.1f} MiB; the next start brings it from version {version} up to date")
    return ok("Database", f"intact, version {version}, {size:.1f} MiB")


def check_store(address: str) -> Finding:
    """Whether the PostgreSQL database of the setting can keep the sessions."""
    import asyncio

    try:
        from ai_whisperer.store.postgresql.checking import check

        report = asyncio.run(check(address))
    except ModuleNotFoundError as error:
        return problem("Database", f"PostgreSQL needs a package ({error})", "pip install 'ai-whisperer[cluster]'")
    except StoreError as error:
        return problem("Database", "the one of the setting store cannot be used", str(error))
    tables = f"version {report.schema}" if report.schema else "no tables yet"
    return ok("Database", f"PostgreSQL {report.server} at {report.address}, {tables}, {report.sessions} sessions")


def check_port(settings: Settings) -> Finding:
    """Whether a server could listen, or who answers there already."""
    where = f"{settings.host}, port {settings.port}"
    if settings.port == 0:
        return ok("Port", "a free one is taken at each start")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((settings.host, settings.port))
        except OSError as error:
            return _taken(settings, where, error)
    return ok("Port", f"{where} is free")


def _taken(settings: Settings, where: str, error: OSError) -> Finding:
    advice = "Stop what uses it, or choose another with --port."
    version = _version_at(settings)
    address = find_address(settings.data)
    if version is None:
        return problem("Port", f"{where} cannot be used ({error.strerror or error})", advice)
    if address is not None and address.url.endswith(f":{settings.port}"):
        return ok("Port", f"the server of this data folder answers at {where} (version {version})")
    return problem("Port", f"a server of another data folder answers at {where} (version {version})", advice)


def _version_at(settings: Settings) -> str | None:
    """The version of the AI Whisperer that answers there; None if it is something else."""
    scheme = "https" if settings.tls_certificate else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    request = Request(f"{scheme}://{host}:{settings.port}/healthz")  # noqa: S310 - http or https
    try:
        trust = HTTPSHandler(context=trusting(str(settings.tls_certificate) if settings.tls_certificate else None))
        with build_opener(ProxyHandler({}), trust).open(request, timeout=_PATIENCE_SECONDS) as answer:
            return str(json.loads(answer.read(10_000))["version"])
    except HTTPError as error:
        error.close()
    except (OSError, HTTPException, ValueError, LookupError, TypeError, WhispererError):
        pass
    return None


def check_templates(library: TemplateLibrary) -> list[Finding]:
    """How many there are, and each file that cannot be used."""
    entries = library.list()
    usable = sum(entry.error is None for entry in entries)
    broken = [
        problem("Templates", f"'{entry.path}' cannot be used", entry.error or "") for entry in entries if entry.error
    ]
    return [ok("Templates", f"{usable} can be used"), *broken]


def check_tools(toolbox: ToolBox) -> list[Finding]:
    """The tools of the project, and each file that cannot be used."""
    names = ", ".join(tool.name for tool in toolbox.tools)
    broken = [problem("Tools", "some are left out", error) for error in toolbox.errors]
    return [ok("Tools", f"of the project: {names or 'none'}"), *broken]
