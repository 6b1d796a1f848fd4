"""The store in SQLite: a file for one process, or a database in memory for tests."""

from ai_whisperer.store.sqlite.store import SqliteStore as SqliteStore
