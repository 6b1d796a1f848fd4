"""Storms: a team in thousands of seeded universes with faults, and what has to hold in each of them.

`faults` are what goes wrong, `choosing` chooses them, `injecting` lets them happen; `universe` is one run, `storming`
are many; `log` is what `invariants` look at; `shrinking` makes a schedule that fails small, and `found_file` keeps it.
"""

from ai_whisperer.storm.invariants import invariant as invariant
from ai_whisperer.storm.log import Log as Log
from ai_whisperer.storm.log import UniverseCall as UniverseCall
from ai_whisperer.storm.log import UniverseRun as UniverseRun
