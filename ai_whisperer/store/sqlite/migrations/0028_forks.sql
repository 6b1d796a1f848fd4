-- Which session a session was forked from, and what calls with effects outside brought there that it may make again.
CREATE TABLE fork (
  session_id TEXT PRIMARY KEY,
  source TEXT NOT NULL,
  at INTEGER NOT NULL,
  since INTEGER NOT NULL,
  paths TEXT NOT NULL,
  made TEXT NOT NULL,
  calls TEXT NOT NULL
) WITHOUT ROWID;
