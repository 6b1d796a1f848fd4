"""A server that is started by root: what is said of it, and how it becomes an ordinary user first."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from ai_whisperer.errors import SettingsError
from ai_whisperer.sandbox.privileges import be_open_to_itself

WARNING = (
    "This server runs as root: whatever escapes from it can do anything on this machine. Start it as an "
    "ordinary user, or with --user NAME."
)


def is_root() -> bool:
    return os.geteuid() == 0


def become(name: str, data: Path) -> None:
    """Let this process be that user from now on; the data folder is made by it, if there is none.

    Raises `SettingsError` if it cannot be: nobody but root can become another, and the folder must be the user's.
    """
    user = _found(name)
    was_another = user.pw_uid != os.geteuid()
    change_to(name, data)
    if was_another:
        _make_folder(data, user)


def change_to(name: str, data: Path) -> None:
    """The same, and the data folder is not made."""
    user = _found(name)
    if user.pw_uid == 0 and is_root():
        raise SettingsError("The setting user is there for servers that are not to run as root. Name another user.")
    if user.pw_uid == os.geteuid():
        return
    if not is_root():
        raise SettingsError(f"Only root can start a server as the user '{name}'. Leave out the setting user.")
    if data.exists() and data.stat().st_uid != user.pw_uid:
        raise SettingsError(
            f"The data folder '{data}' does not belong to the user '{user.pw_name}'. Hand it over: "
            f"chown -R {user.pw_name} '{data}'; or choose another data folder."
        )
    os.initgroups(user.pw_name, user.pw_gid)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    be_open_to_itself()
    for part in (__file__, os.__file__):
        if not os.access(part, os.R_OK):
            raise SettingsError(
                f"The user '{name}' cannot read this program or its Python: '{part}'. Install them where everybody may "
                "read, not in root's own folder."
            )
    os.environ |= {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}


def _found(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name) if not name.isdecimal() else pwd.getpwuid(int(name))
    except (KeyError, OverflowError) as error:
        raise SettingsError(f"There is no user '{name}' on this machine. Correct the setting user.") from error


def _make_folder(data: Path, user: pwd.struct_passwd) -> None:
    """Make the data folder as the user: who may write above it could otherwise be given something else of root's."""
    try:
        data.mkdir(parents=True, mode=0o700, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"The user '{user.pw_name}' cannot make the data folder '{data}': {error.strerror}. Make it: "
            f"install -d -m 700 -o {user.pw_name} '{data}'"
        ) from error
