"""Ways out of a sandbox: a program that tries each of them from within, and says which ones worked.

A level holds on a machine only if none does. Nothing here does harm where it works: what is opened is not written,
what is set is set to what it is, and a call that could do more is made so that it fails after its permission was
checked.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ai_whisperer.sandbox.ways_out import attempts, files, kernel, network, processes

__all__ = ["WAYS", "SENDS_BY_UDP", "program"]

WAYS = tuple(attempts.WAYS)
"""What each of them would be, as a person says it: "a program in it could …"."""

SENDS_BY_UDP = network.SENDS_BY_UDP
"""The one that is judged from outside: whether it worked is known by what arrives."""

_PARTS = (attempts, files, kernel, network, processes)


@cache
def program() -> str:
    """The program, which needs nothing but Python; its argument is what lies outside, as `attempts.tried` has it."""
    texts = {part.__name__: Path(part.__file__ or "").read_text() for part in _PARTS}
    return f"""
import json, sys, types
for name, text in {texts!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(text, module.__dict__)
print(json.dumps(sys.modules[{attempts.__name__!r}].tried(json.loads(sys.argv[1]))))
"""
