"""Ray runs the nodes: one detached actor for each, and a keeper that sees to it that there are as many as wanted.

An actor is only a shell. It starts the very same `whisperer serve` that a person would, in a process that outlives it:
a Ray that dies takes no session with it. That there is one node of each name is decided by the database, so a shell
that finds its node alive elsewhere waits until that one is gone. How many nodes there are to be is in the database.
"""
