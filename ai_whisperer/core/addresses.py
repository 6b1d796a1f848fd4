"""Who is meant by a name: ids, display names and aliases, whatever their case and spacing."""

from __future__ import annotations

import re
from difflib import get_close_matches

from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.mail import USER
from ai_whisperer.errors import DuplicateIdError, InvalidInputError, UnknownAgentError, UnknownRecipientError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")
_MOST_COMPARED = 200
_SEPARATORS = re.compile(r"[\s_\-]+")


def normalized(name: str) -> str:
    return _SEPARATORS.sub(" ", name.strip()).casefold()


def check_agent_id(agent_id: str) -> None:
    """Raise `InvalidInputError` unless the id can name an agent."""
    if not isinstance(agent_id, str) or not _ID.fullmatch(agent_id):
        raise InvalidInputError(
            f"{agent_id!r} cannot name an agent: use 1 to 100 letters, digits, '-', '_' or '.', "
            "beginning with a letter or digit."
        )
    if normalized(agent_id) == USER:
        raise InvalidInputError("'user' is the person's own address. Choose another agent id.")


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidInputError(f"Name an agent by text or by its handle, not by {type(name).__name__}.")


class AddressBook:
    """The names of one session's agents. A name means one agent only."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._known: dict[str, str] = {}  # the ids as they are written, which is how agents are named nearly always

    def add(self, agent_id: str, definition: AgentDefinition) -> None:
        """Enter an agent under all its names, or none of them: raises `DuplicateIdError` if one is taken."""
        names = {normalized(name) for name in (agent_id, definition.name, *definition.aliases)} - {""}
        for name in names:
            taken = USER if name == USER else self._ids.get(name)
            if taken == agent_id:
                raise DuplicateIdError(f"There is an agent '{agent_id}' already. Use it, or choose another id.")
            if taken is not None:
                raise DuplicateIdError(
                    f"The name '{name}' already means '{taken}' in this session. Choose another name for '{agent_id}'."
                )
        for name in names:
            self._ids[name] = agent_id
        self._known[agent_id] = agent_id

    def remove(self, agent_id: str) -> None:
        """Forget all names of an agent."""
        self._ids = {name: known for name, known in self._ids.items() if known != agent_id}
        del self._known[agent_id]

    def replace(self, agent_id: str, old: AgentDefinition, new: AgentDefinition) -> None:
        """Give an agent the names of its new definition; raises `DuplicateIdError` and keeps the old ones."""
        self.remove(agent_id)
        try:
            self.add(agent_id, new)
        except DuplicateIdError:
            self.add(agent_id, old)
            raise

    def knows(self, name: str) -> bool:
        return name in self._known or normalized(name) in self._ids

    def resolve(self, name: str) -> str:
        """The id of the agent that is meant; raises `UnknownAgentError` with the valid names."""
        _check_name(name)
        found = self._known.get(name) or self._ids.get(normalized(name))
        if found is None:
            raise UnknownAgentError(f"There is no agent '{name}'.{self._nearest(name)} {self._told([])}")
        return found

    def resolve_recipient(self, name: str) -> str:
        """The agent or the person a mail goes to; raises `UnknownRecipientError` with the valid names."""
        _check_name(name)
        found = self._known.get(name)
        if found is not None:
            return found
        as_kept = normalized(name)
        found = USER if as_kept == USER else self._ids.get(as_kept)
        if found is None:
            raise UnknownRecipientError(
                f"Nobody here is called '{name}'; nothing was sent.{self._nearest(name)} {self._told([USER])}"
            )
        return found

    def _nearest(self, name: str) -> str:
        """Which agent may be meant, as a sentence. Of very many only those that begin alike are looked at."""
        wanted = normalized(name)
        names = self._ids if len(self._ids) <= _MOST_COMPARED else [n for n in self._ids if n[:2] == wanted[:2]]
        near = get_close_matches(wanted, list(names)[:_MOST_COMPARED], n=1)
        return f" Did you mean '{self._ids[near[0]]}'?" if near else ""

    def _told(self, others: list[str]) -> str:
        shown = sorted(self._known)[:50]
        more = f" and {len(self._known) - 50} more" if len(self._known) > 50 else ""
        return f"Valid names: {', '.join([*shown, *others]) or 'none yet'}{more}."
