-- Which session a session was forked from, what effects it may have, and what calls brought there that it does not repeat.
CREATE TABLE fork (
  session_id TEXT PRIMARY KEY,
  source TEXT NOT NULL,
  at INTEGER NOT NULL,
  since INTEGER NOT NULL,
  effects TEXT NOT NULL,
  paths TEXT NOT NULL,
  made TEXT NOT NULL,
  calls TEXT NOT NULL
) WITHOUT ROWID;
