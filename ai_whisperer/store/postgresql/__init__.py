"""The store in PostgreSQL: a database that other machines can reach, for one process at a time. Needs `asyncpg`."""
