"""Faults of the disk, one at each call into SQLite and at each call of SQLite into the system, in a real server."""
