"""The process in which one measurement runs: `python -m bench.child MODULE:FUNCTION FOLDER VALUES`."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from importlib import import_module
from pathlib import Path


def main(function: str, folder: str, values: str) -> None:
    module, _, name = function.partition(":")
    result = getattr(import_module(module), name)(Path(folder), **json.loads(values))
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
