"""The library of templates: an ordered search path of folders, read when it is asked."""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.addresses import normalized
from ai_whisperer.domain.definition import INHERIT
from ai_whisperer.errors import InvalidInputError, ModelNameError, TemplateError, UnknownTemplateError
from ai_whisperer.templates.claude import unusable_model
from ai_whisperer.templates.drafts import Draft
from ai_whisperer.templates.folders import (
    EMPTY,
    TemplateFolder,
    TemplateKind,
    folder_at,
    look_into,
    read_file,
)
from ai_whisperer.templates.front_matter import fault
from ai_whisperer.templates.parsing import Template, template_of
from ai_whisperer.templates.shelf import Found, Shelf

_log = logging.getLogger(__name__)

BUILTIN = TemplateFolder(Path(__file__).parent / "builtin", TemplateKind.BUILTIN)
"""The templates that come with the package."""


_NUMBER = re.compile(r"(?<=\w) ?[0-9]+\Z")


class TemplateEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list: a template or, with an `error`, a file or folder that cannot be used."""

    name: str
    description: str
    kind: TemplateKind
    path: str
    error: str | None = None


class ReadFile(NamedTuple):
    """A file of the search path: its template, if it is one, and the file that is meant by its name instead, if any."""

    entry: TemplateEntry
    template: Template | None
    hidden_by: str


class TemplateLibrary:
    """The templates in these folders; of two with one name that in the earlier folder is meant.

    Case and spacing of names do not matter. The folders are looked at whenever the library is asked, so a file that
    was added or changed counts at once; a file that did not change is not read again.
    """

    def __init__(
        self, folders: Iterable[TemplateFolder | str | Path], *, check_model: Callable[[str], None] | None = None
    ) -> None:
        """`check_model` raises `ModelNameError` for a model that there is not; without it any name will do."""
        given = (folder if isinstance(folder, TemplateFolder) else folder_at(folder) for folder in folders)
        first: dict[Path, TemplateFolder] = {}
        for folder in given:
            first.setdefault(folder.path, folder)
        self._folders = tuple(first.values())
        self._check_model = check_model
        self._shelf = Shelf([EMPTY for _ in self._folders])
        self._told: set[str] = set()

    @classmethod
    def standard(cls, project: str | Path | None = None, user: str | Path | None = None) -> TemplateLibrary:
        """The project's `.whisperer/agents` and `.claude/agents`, the user's `agents`, and the built-in ones.

        `project` is the current folder unless given, `user` is `$WHISPERER_HOME` or `~/.whisperer`.
        """
        folders: list[TemplateFolder] = []
        root = _current_folder() if project is None else Path(os.path.abspath(project))
        if root is not None:
            folders.append(TemplateFolder(root / ".whisperer" / "agents", TemplateKind.PROJECT))
            folders.append(TemplateFolder(root / ".claude" / "agents", TemplateKind.CLAUDE))
        home = _user_folder() if user is None else Path(user)
        if home is not None:
            folders.append(TemplateFolder(home / "agents", TemplateKind.USER))
        return cls([*folders, BUILTIN])

    @property
    def folders(self) -> tuple[TemplateFolder, ...]:
        """The search path."""
        return self._folders

    def get(self, name: str) -> Template:
        """The template with that name; raises `UnknownTemplateError` with those that there are.

        One whose file cannot be used raises its `TemplateError`.
        """
        found = self.find(name)
        if found is None:
            raise self._unknown(name)
        return found

    def find(self, name: str) -> Template | None:
        """The template with that name, or None; raises `TemplateError` if its file cannot be used."""
        if not isinstance(name, str):
            raise InvalidInputError(f"Name a template by text, not by {type(name).__name__}.")
        return self._usable(self._look(), normalized(name))

    def called(self, agent_id: str) -> Template | None:
        """The template that is called like the agent, or like it but for a number at its end, or None.

        So `coder1` and `coder-2` are made of `coder`, unless they have templates of their own.
        """
        whole = normalized(agent_id)
        return self._usable(self._look(), whole, _NUMBER.sub("", whole))

    def addressed(self, name: str) -> tuple[Template, str] | None:
        """The template that is meant by the name of an agent that is not there, and the id for that agent, or None.

        It is the one that `called` finds, or else the one that has this further name (`display_name`, `aliases`). The
        agent is called like its template, with the number if there is one at the end. The empty name means nobody.
        """
        whole, shelf = normalized(name), self._look()
        if not whole.strip():
            return None
        found = self._usable(shelf, whole, _NUMBER.sub("", whole))
        if found is not None:
            return found, found.name if normalized(found.name) == whole else whole.replace(" ", "-")
        for each in self._further(shelf).get(whole, ()):
            with contextlib.suppress(TemplateError):
                return self._template(each, shelf), each.file.name
        return None

    def names(self) -> list[str]:
        """The names of the templates that can be used, in order."""
        return [entry.name for entry in self.list() if entry.error is None]

    def list(self) -> list[TemplateEntry]:
        """All templates by name, and the files that cannot be used, each with its error."""
        shelf = self._look()
        seen: set[str] = set()
        entries: list[TemplateEntry] = []
        for found in shelf:
            name = normalized(found.file.name)
            if name not in seen or isinstance(found.file.content, TemplateError):
                entries.append(self._read(found, shelf).entry)
            seen.add(name)
        return sorted(entries, key=lambda entry: normalized(entry.name))

    def files(self) -> Sequence[ReadFile]:
        """All files in the order of the search path, also those whose name means another."""
        shelf = self._look()
        return [self._read(found, shelf) for found in shelf]

    def load(self, path: str | Path) -> Template:
        """The template in that file, which need not be in the library; what it extends is looked for there."""
        whole = Path(os.path.abspath(path))
        file = read_file(whole, folder_at(whole.parent).kind)
        if file is None:
            raise fault(str(whole), 1, "a template begins with a line '---' and its fields after it.")
        inside = (at for at, folder in enumerate(self._folders) if whole.is_relative_to(folder.path))
        return self._template(Found(file, next(inside, -1)), self._look())

    def _look(self) -> Shelf:
        """What is in the folders now, arranged anew only if it is not what it was."""
        listings = [look_into(folder) for folder in self._folders]
        if not self._shelf.is_of(listings):
            self._shelf = Shelf(listings)
        return self._shelf

    def _usable(self, shelf: Shelf, *names: str) -> Template | None:
        found = shelf.first(*names)
        return None if found is None else self._template(found, shelf)

    def _further(self, shelf: Shelf) -> Mapping[str, Sequence[Found]]:
        if shelf.further is None:
            further: dict[str, list[Found]] = {}
            for found in shelf.firsts():
                with contextlib.suppress(TemplateError):
                    for name in _names_of(template_of(self._chain(found, shelf))):
                        further.setdefault(name, []).append(found)
            shelf.further = further
        return shelf.further

    def _read(self, found: Found, shelf: Shelf) -> ReadFile:
        template, error = None, None
        try:
            template = self._read_template(found, shelf)
        except TemplateError as complaint:
            error = complaint.message
        entry = TemplateEntry(
            name=found.file.name,
            description="" if template is None else template.definition.description,
            kind=self._folders[found.position].kind,
            path=str(found.file.path),
            error=error,
        )
        meant = shelf.first(normalized(found.file.name)) or found
        return ReadFile(entry, template, "" if meant.file.path == found.file.path else str(meant.file.path))

    def _template(self, found: Found, shelf: Shelf) -> Template:
        """The template in that file, which is going to be used: what is replaced in it is said in the log, once."""
        template = self._read_template(found, shelf)
        why = next((each for each in template.ignored_fields if each.startswith("model: claude-")), None)
        if why is not None and template.source not in self._told:
            self._told.add(template.source)
            _log.warning("%s: %s", template.source, why)
        return template

    def _read_template(self, found: Found, shelf: Shelf) -> Template:
        """The template in that file with what it extends. The session's model takes the place of one without a key."""
        chain = self._chain(found, shelf)
        template = template_of(chain)
        model = template.definition.model
        if self._check_model is None or model == INHERIT:
            return template
        stating = next(each for each in chain if "model" in each.fields)
        for name in template.definition.models:
            try:
                if name != INHERIT:
                    self._check_model(name)
            except ModelNameError as error:
                raise fault(*stating.spot(("model",)), f"model: {error.message}") from error
        why = unusable_model(model, os.environ) if stating.is_outside and isinstance(model, str) else None
        if why is None:
            return template
        usable = replace(template.definition, model=INHERIT)
        return replace(template, definition=usable, ignored_fields=(*template.ignored_fields, f"model: {why}"))

    def _chain(self, found: Found, shelf: Shelf) -> tuple[Draft, ...]:
        """What that file says, and what it extends says, in turn."""
        chain = [found]
        while (parent := chain[-1].draft.extends) is not None:
            chain.append(self._parent(chain, parent, shelf))
        return tuple(each.draft for each in chain)

    def _parent(self, chain: Sequence[Found], name: str, shelf: Shelf) -> Found:
        """What the last of the chain extends; raises `TemplateError` that names its file, its line and the chain."""
        child = chain[-1].draft
        shown = " → ".join([*(each.draft.name for each in chain), name])
        where = child.spot(("extends",))
        same_name = normalized(name) == normalized(child.name)
        found = shelf.first(normalized(name), below=chain[-1].position if same_name else -1)
        if found is None:
            raise fault(*where, self._nothing_to_extend(chain, name, shown, shelf))
        if any(each.file.path == found.file.path for each in chain):
            raise fault(*where, f"`extends` forms a cycle: {shown}.")
        if isinstance(found.file.content, TemplateError):
            raise fault(*where, f"what it extends cannot be used ({shown}): {found.file.content.message}")
        return found

    def _nothing_to_extend(self, chain: Sequence[Found], name: str, shown: str, shelf: Shelf) -> str:
        if normalized(name) == normalized(chain[-1].draft.name):
            return (
                f"there is no other template '{name}' further down the search path to extend ({shown}). Name another "
                "one, or remove `extends`."
            )
        return f"there is no template '{name}' to extend ({shown}).{_nearest(name, shelf, besides=chain)}"

    def _unknown(self, name: str) -> UnknownTemplateError:
        entries = self.list()
        names = ", ".join(entry.name for entry in entries if entry.error is None) or "none"
        unread = [entry.error for entry in entries if entry.error and not entry.name]
        problems = f" Not all folders could be looked at: {' '.join(unread)}" if unread else ""
        return UnknownTemplateError(
            f"There is no template '{name}'.{_nearest(name, self._look())} Templates: {names}.{problems}"
        )


AnyLibrary = TemplateLibrary | str | Path | Iterable[str | Path] | None
"""A library, or the folders before the built-in one; None for the standard one."""


def library_of(given: AnyLibrary, *, check_model: Callable[[str], None] | None = None) -> TemplateLibrary:
    """The library that is meant. One that is given as such checks models as it was made to."""
    if isinstance(given, TemplateLibrary):
        return given
    if given is None:
        return TemplateLibrary(TemplateLibrary.standard().folders, check_model=check_model)
    folders = [given] if isinstance(given, str | Path) else given
    return TemplateLibrary([*folders, BUILTIN], check_model=check_model)


def load_template(path: str | Path) -> Template:
    """Read a template file; raises `TemplateError` that names the file and the line.

    What it extends is looked for beside it, then in the standard library.
    """
    standard = TemplateLibrary.standard()
    return TemplateLibrary([Path(path).parent, *standard.folders]).load(path)


def _names_of(template: Template) -> set[str]:
    return {normalized(name) for name in (template.definition.name, *template.definition.aliases)}


def _nearest(name: str, shelf: Shelf, *, besides: Iterable[Found] = ()) -> str:
    known = {normalized(found.file.name): found.file.name for found in shelf if found.file.name}
    for found in besides:
        known.pop(normalized(found.file.name), None)
    near = difflib.get_close_matches(normalized(name), known, n=1)
    return f" Did you mean '{known[near[0]]}'?" if near else ""


def _current_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def _user_folder() -> Path | None:
    """The user's own folder, if the process has a user with a home."""
    given = os.environ.get("WHISPERER_HOME")
    if given:
        return Path(given).expanduser()
    try:
        return Path.home() / ".whisperer"
    except RuntimeError:
        return None
