"""What passes between agents, and between them and the person: mail, questions that wait for an answer (`switch`),
delegated work, events, schedules, rooms.

When a mail becomes a task, and when a task begins, is decided by the agent that gets it.
"""
