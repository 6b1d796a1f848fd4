"""Play seeds again, and let what they break be raised: `python -m tests.power SEED...`."""

from __future__ import annotations

import sys

from tests.power.lives import PowerLives

for _seed in map(int, sys.argv[1:]):
    _run = PowerLives(_seed)
    _run.run()
    print(f"seed {_seed}: {dict(_run.cuts)}, {len(_run.witness.told)} notifications told, nothing is wrong")
