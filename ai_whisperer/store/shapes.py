"""Shapes of notifications: which values are kept of each, and in which way. They are kept beside what they are for."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A value of a notification: its key, and how it is kept.

    - `optional`: it is left out of the params where None is kept.
    - `boxed`: it may be None itself, so it is kept in an array.
    - `same`: the key of an earlier value; True is kept if both are equal.
    - `after`: the key of an earlier value. If it begins with that and a dot, it is kept from the dot on, or else
      whole in an array.
    - `json`: as JSON text, since it may hold anything.
    - `parts`: it is an object, of which the values are kept.
    """

    key: str
    optional: bool = False
    boxed: bool = False
    same: str = ""
    after: str = ""
    json: bool = False
    parts: tuple[Part, ...] = ()


class Shape(msgspec.Struct, frozen=True):
    """A row of the shapes. `cause` is the key of the task that is the cause where None is kept for it."""

    number: int
    name: str
    cause: str
    parts: tuple[Part, ...]
