"""The folders of a session: one for each agent, one for all of them together, and those that it was given."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ai_whisperer.core.file_names import file_name, file_name_before, renamed
from ai_whisperer.domain.definition import Access, AgentDefinition
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.errors import DefinitionError, InvalidInputError
from ai_whisperer.runtime.session.reads import Reads
from ai_whisperer.sandbox.base import Sandbox
from ai_whisperer.sandbox.choosing import AUTO, ChosenSandbox
from ai_whisperer.sandbox.own_code import imported_from
from ai_whisperer.sandbox.system import interpreter_folders
from ai_whisperer.store.attachments import AttachmentFiles
from ai_whisperer.store.layout import WORK
from ai_whisperer.templates.folders import TemplateKind
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.tools.files.taking_over import take_over
from ai_whisperer.tools.function import CancelSignal, in_thread
from ai_whisperer.tools.workplace import FILE, OWN, OWN_AS_WRITTEN, SETTINGS_FILE, SHARED, TEMPORARY, Folder, Workplace

_log = logging.getLogger(__name__)
_AGENTS = "agents"
_ATTACHMENTS = "attachments"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")


def checked_folders(folders: Mapping[str, str | Path], *, kept: Sequence[Path]) -> dict[str, Path]:
    """The folders that agents can be granted, with their real paths; raises `InvalidInputError` that names the bad one.

    A folder that lies in one of those that are kept from agents is refused. One that holds such a folder is not: there
    it is hidden.
    """
    if not isinstance(folders, Mapping):
        raise InvalidInputError(f"folders must map names to the paths of folders, not {type(folders).__name__}.")
    return {_checked_name(name): _checked_path(name, path, kept) for name, path in folders.items()}


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInputError(
            f"A folder cannot be called {name!r}. A name begins with a letter or digit and has letters, digits, '-', "
            "'_' and '.', 100 at most."
        )
    if name == SHARED:
        raise InvalidInputError(
            f"A folder cannot be called '{SHARED}': every session already has one with the same name."
        )
    if name == OWN_AS_WRITTEN:
        raise InvalidInputError(
            f"A folder cannot be called '{OWN_AS_WRITTEN}': paths that begin so lead to the own folder of an agent. "
            "Give it another name."
        )
    return name


def _checked_path(name: str, path: str | Path, kept: Sequence[Path]) -> Path:
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        raise InvalidInputError(f"The folder '{name}' must be the path of a folder, not {path!r}.")
    real = Path(path).resolve()
    if not real.is_dir():
        raise InvalidInputError(f"The folder '{name}' is not there: '{path}'. Make it, or correct its path.")
    if real == real.parent:
        raise InvalidInputError(f"The folder '{name}' is all of this machine. Grant a folder that lies in it.")
    around = next((each for each in kept if real.is_relative_to(each)), None)
    if around is not None:
        raise InvalidInputError(
            f"The folder '{name}' ('{path}') is '{around}' or lies in it, where the runtime has its data, settings, "
            "templates or tools. Grant another folder."
        )
    return real


def kept_from_agents(
    data: Iterable[str | Path | None], *, hidden: Iterable[str | Path], templates: TemplateLibrary
) -> tuple[Path, ...]:
    """What no agent may see or make, even in a folder that it is granted, by real paths.

    It is where the data lies, and what decides what the runtime does: the settings, templates and tool files of the
    project in the current folder, the folders of the library, and what else is to be hidden. Whoever could write
    these could have any code run. Raises `InvalidInputError` if `hidden` are no paths.
    """
    if isinstance(hidden, str | Path) or not all(isinstance(each, str | Path) and str(each) for each in hidden):
        raise InvalidInputError("hidden must be a list of paths.")
    kept = [Path(each) for each in (*data, *hidden) if each is not None]
    kept += [folder.path for folder in templates.folders if folder.kind is not TemplateKind.BUILTIN]
    with contextlib.suppress(FileNotFoundError):  # there is no current folder any more
        kept += [Path.cwd() / name for name in (".whisperer", ".claude/agents", SETTINGS_FILE)]
    absolute = [Path(os.path.abspath(path)) for path in kept]
    # A path that is a link is kept under its own name as well: it could be replaced by something else.
    named = [path.parent.resolve() / path.name for path in absolute]
    return tuple(sorted({*named, *(path.resolve() for path in absolute)}))


def _hidden_in(folder: Path, kept: Iterable[Path]) -> tuple[str, ...]:
    """Those of the kept paths that lie in the folder, relative to it; what lies in another of them is left out."""
    inside = {path for path in kept if path != folder and path.is_relative_to(folder)}
    outermost = sorted(path for path in inside if inside.isdisjoint(path.parents))
    return tuple(path.relative_to(folder).as_posix() for path in outermost)


def work_of(root: Path, session_id: str) -> Path:
    """Where the agents of the session have their folders."""
    return root / WORK / file_name(session_id)


def take_over_work(root: Path, session_id: str) -> None:
    """Give the folders of a session that an earlier version made the names that they have now."""
    work = work_of(root, session_id)
    before = file_name_before(session_id)
    if before != work.name:
        take_over(work.parent, lambda _: {before: work.name})
    take_over(work / _AGENTS, renamed)


def remove_work(root: Path, path: Path) -> bool:
    """Remove a folder with work in it; what cannot be removed is told in the log. Returns whether it is gone."""
    from ai_whisperer.tools.files.removing import remove_beneath

    try:
        remove_beneath(root.resolve(), root.resolve() / path.relative_to(root))
    except FileNotFoundError:
        pass  # somebody else removes it
    except OSError as error:
        _log.warning("the folder %s could not be removed, remove it by hand: %s", path, error)
        return False
    return True


def remove_work_of(root: Path, session_id: str) -> bool:
    """Remove the folders of a session, also those that an earlier version made. Returns whether they are gone."""
    take_over_work(root, session_id)
    return remove_work(root, work_of(root, session_id))


def check_working_folder(agent_id: str, definition: AgentDefinition) -> None:
    """Raise `DefinitionError` if the agent is to work in a folder that it is not granted."""
    if definition.working_folder and definition.working_folder not in definition.folders:
        granted = ", ".join(definition.folders) or "none"
        raise DefinitionError(
            f"'{agent_id}' is to work in the folder '{definition.working_folder}', which it is not granted. It is "
            f"granted: {granted}. Add it to folders, or correct working_folder."
        )


def _temporary_folder() -> Path:
    """A folder for a session that has none, which is made when something is put into it."""
    import tempfile  # few sessions have none

    return Path(tempfile.gettempdir(), f"whisperer-{secrets.token_hex(8)}")


class Folders:
    """Gives each agent its workplace. Nothing is made on disk before a tool wants it.

    Without a folder to keep them in, the agents' folders are temporary and gone when the session is closed. Programs
    run in the sandbox that is given; a session that is given none has its own. What is `kept` is hidden in the granted
    folders, and the server's Python, whose code runs here, in those that may be written.
    """

    def __init__(
        self,
        root: Path | None,
        session_id: str,
        granted: Mapping[str, Path],
        *,
        kept: Iterable[Path] = (),
        sandbox: str | Sandbox = AUTO,
    ) -> None:
        self._temporary = root is None
        # Without links in it, since the file tools take one that appears in the way of a folder for a trick.
        base = (root or _temporary_folder()).resolve()
        self._base = base
        self._session_id = session_id
        self._root = work_of(base, session_id)
        self._sweeping: asyncio.Future[None] | None = None
        self.attaching = asyncio.Lock()
        self._granted = dict(granted)
        kept = sorted({*kept, base})
        own_code = [*kept, *map(Path, interpreter_folders())]
        self._hidden = {
            Access.READ: {name: _hidden_in(path, kept) for name, path in self._granted.items()},
            Access.WRITE: {name: _hidden_in(path, own_code) for name, path in self._granted.items()},
        }
        self._imported = {name: imported_from(path, apart=own_code) for name, path in self._granted.items()}
        self._own_sandbox: ChosenSandbox | None = None
        if isinstance(sandbox, str):
            sandbox = self._own_sandbox = ChosenSandbox(sandbox)
        self._sandbox = sandbox

    def check(self, agent_id: str, definition: AgentDefinition) -> None:
        """Raise `DefinitionError` if the definition grants a folder that nobody has, or for writing what is code here.

        Or if the agent is to work in one that it is not granted.

        Whoever could write where this program imports from could have any code run, outside of every sandbox.
        """
        missing = [name for name in definition.folders if name != SHARED and name not in self._granted]
        if missing:
            known = ", ".join((SHARED, *self._granted))
            raise DefinitionError(
                f"'{agent_id}' is granted folders that the session does not have: {', '.join(missing)}. It has: "
                f"{known}. Name another, or add it to the setting folders."
            )
        check_working_folder(agent_id, definition)
        for name, access in definition.folders.items():
            entry = self._imported.get(name)
            if access is Access.WRITE and entry is not None:
                raise DefinitionError(
                    f"'{agent_id}' cannot be granted the folder '{name}' ('{self._granted[name]}') for writing: this "
                    f"program imports its own code from '{entry}', so what the agent writes could be run without a "
                    f"sandbox. Grant it for reading ({name}: read), grant a subfolder that holds no code of the "
                    "program, or start the program from a folder elsewhere (`whisperer serve` may run anywhere)."
                )

    def of(self, agent_id: str, definition: AgentDefinition, limits: EffectiveLimits) -> Workplace:
        """The workplace of the agent. A granted folder that the session no longer has is left out.

        One that has become code of this program since it was granted can only be read.
        """
        folders = {OWN: Folder(path=self._root / _AGENTS / file_name(agent_id), access=Access.WRITE)}
        for name, granted in definition.folders.items():
            path = self._root / SHARED if name == SHARED else self._granted.get(name)
            if path is not None:
                access = Access.READ if self._imported.get(name) is not None else granted
                folders[name] = Folder(path=path, access=access, hidden=self._hidden[access].get(name, ()))
        return Workplace(
            folders=folders,
            network=definition.network,
            limits=limits,
            sandbox=self._sandbox,
            working=definition.working_folder if definition.working_folder in folders else OWN,
        )

    @property
    def attachments(self) -> AttachmentFiles:
        """The contents of the images and files that came with tasks and messages. No tool reaches them."""
        return AttachmentFiles(self._root / _ATTACHMENTS)

    def shown(self, resource: str) -> str:
        """The name of a resource as people and models are shown it: a file by its folder, not by its path on disk."""
        if not resource.startswith(FILE):
            return resource
        path = Path(resource.removeprefix(FILE))
        folders = [("", self._root), *self._granted.items()]
        found = [(len(folder.parts), name, folder) for name, folder in folders if path.is_relative_to(folder)]
        if not found:
            return f"{FILE}{path.name}"
        _, name, folder = max(found)
        return f"{FILE}{(Path(name) / path.relative_to(folder)).as_posix()}"

    def take_over(self) -> None:
        """Find the folders that an earlier version made. The session must be open, so that it is nobody else's."""
        take_over_work(self._base, self._session_id)

    def put_aside(self, agent_id: str) -> None:
        """Let an agent that was deleted have no folder any more: one of its name begins with nothing."""
        self._put_aside(self._root / _AGENTS / file_name(agent_id))

    async def remove_aside(self) -> None:
        """Remove what was put aside."""
        if self._sweeping is not None:
            await self._sweeping
        if left := self._aside():
            await asyncio.to_thread(self._swept, left)

    def sweep(self, deleted: Iterable[str] = ()) -> None:
        """Remove what programs left in folders for temporary files when the process ended before they did.

        So it is with the folders of agents that were being deleted. The folders are put aside at once, and removed
        meanwhile. What cannot be put aside is told in the log.
        """
        self._put_aside(self._root / TEMPORARY)
        for agent_id in deleted:
            self.put_aside(agent_id)
        if left := self._aside():
            self._sweeping = asyncio.get_running_loop().run_in_executor(None, self._swept, left)

    def _put_aside(self, folder: Path) -> None:
        try:
            folder.rename(self._root / f"{TEMPORARY}.{secrets.token_hex(8)}")
        except FileNotFoundError:
            pass
        except OSError as error:
            _log.warning("the folder %s could not be put aside, remove it by hand: %s", folder, error.strerror)

    def _aside(self) -> list[Path]:
        return sorted(self._root.glob(f"{TEMPORARY}.*"))

    async def sweep_attachments(self, reads: Reads) -> None:
        """Remove the contents that nothing names: what named them was erased, or nothing ever came to do so.

        Whoever has `attaching` has kept a content that nothing names yet.
        """
        if not (self._root / _ATTACHMENTS).is_dir():
            return
        async with self.attaching:
            values = {"named": set(await reads.attachment_digests())}
            removed = await in_thread(self.attachments.sweep, values, CancelSignal())
            if removed:
                _log.info("%d files that no task or message names were removed", len(removed))

    def _swept(self, left: Sequence[Path]) -> None:
        for path in left:
            remove_work(self._base, path)

    async def close(self) -> None:
        """Remove the folders that were only for as long as the session was open, and let go of its own sandbox."""
        if self._own_sandbox is not None:
            await self._own_sandbox.close()
        if self._sweeping is not None:
            await self._sweeping
        if self._temporary and self._root.exists():
            await asyncio.to_thread(remove_work, self._base.parent, self._base)
