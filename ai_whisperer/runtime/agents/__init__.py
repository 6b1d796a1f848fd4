"""Live agents: their lifecycle, their queues and loops, each step of a loop, the end of a task and what follows from
it; how agents are created, and what they are supplied with.

Rules that need no session (what the next step is, in which order work is taken) are in `core/`.
"""
