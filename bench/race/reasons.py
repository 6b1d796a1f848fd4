"""Why others are ahead of us in a measure, as a profiler said. Shown only where somebody is."""

from __future__ import annotations

NOT_KNOWN = "Why is not known: profile both."

_ON_DEMAND = (
    "agno and google-adk keep the functions as they were given and look at them in the first task, so that the "
    "measure after it is the one that compares."
)

REASONS = {
    ("messages-memory", "per_cpu_second"): (
        "There a message is a Python object that a handler gets, or a call of the other agent, and the answer is its "
        "value; at most the agents keep what was said. Ours is a mail that may wait, be listed, be answered later and "
        "be found in the log, and a task with its steps: 24 SQL statements for a question and its answer, in memory "
        "as on disk. What the mail alone takes is in the measure without a model."
    ),
    ("agents-made", "kb"): (
        f"{_ON_DEMAND} Ours has read and checked each function, and has a queue, an entry in the address book and two "
        "notifications in memory."
    ),
    ("agents-made", "cpu_ms"): (
        f"{_ON_DEMAND} Ours has read and checked each function, looked for a template of the agent's name, and is on "
        "disk."
    ),
    ("restart", "first_step_cpu"): "Nearly all of it are imports: 330 modules of ours come before the first step.",
    ("restart", "first_step_seconds"): "The processor time to the first step says how much of it was work.",
    ("restart", "opening_seconds"): "The lock of the folder is taken and all agents and tasks are read before.",
    ("restart", "steps_repeated"): (
        "These had ended while the last commits were on their way to the disk. It differs from run to run, and a "
        "commit that is synced is longer on its way."
    ),
}
"""By workload and the name of the value."""
