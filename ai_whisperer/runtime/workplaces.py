"""The folders of a session: one for each agent, one for all of them together, and those that it was given."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from ai_whisperer.definition import Access, AgentDefinition, EffectiveLimits
from ai_whisperer.errors import DefinitionError
from ai_whisperer.tools.workplace import FILE, OWN, SHARED, Folder, Workplace


class Workplaces:
    """Gives each agent its workplace. Nothing is made on disk before a tool wants it.

    Without a folder to keep them in, the agents' folders are temporary and gone when the session is closed.
    """

    def __init__(self, root: Path | None, session_id: str, granted: Mapping[str, Path]) -> None:
        name = quote(session_id, safe="")
        self._temporary = root is None
        base = Path(tempfile.gettempdir(), f"whisperer-{secrets.token_hex(8)}") if root is None else root.absolute()
        self._root = base / "work" / name
        self._granted = {name: path.absolute() for name, path in granted.items()}

    def check(self, agent_id: str, definition: AgentDefinition) -> None:
        """Raise `DefinitionError` if the definition grants a folder that nobody has."""
        missing = [name for name in definition.folders if name != SHARED and name not in self._granted]
        if missing:
            known = ", ".join((SHARED, *self._granted))
            raise DefinitionError(
                f"'{agent_id}' is granted folders that the session does not have: {', '.join(missing)}. It has: "
                f"{known}. Name another, or add it to the setting folders."
            )

    def of(self, agent_id: str, definition: AgentDefinition, limits: EffectiveLimits) -> Workplace:
        """The workplace of the agent. A granted folder that the session no longer has is left out."""
        folders = {OWN: Folder(path=self._root / "agents" / quote(agent_id, safe=""), access=Access.WRITE)}
        for name, access in definition.folders.items():
            path = self._root / SHARED if name == SHARED else self._granted.get(name)
            if path is not None:
                folders[name] = Folder(path=path, access=access)
        return Workplace(folders=folders, network=definition.network, limits=limits)

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
        return f"{FILE}{unquote((Path(name) / path.relative_to(folder)).as_posix())}"

    async def close(self) -> None:
        """Remove the folders that were only for as long as the session was open."""
        if self._temporary and self._root.exists():
            await asyncio.to_thread(shutil.rmtree, self._root.parents[1], ignore_errors=True)
