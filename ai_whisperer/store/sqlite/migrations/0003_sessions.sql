CREATE TABLE session (
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  owner TEXT NOT NULL,
  created_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_by_owner ON session (owner, created_at, id);

-- Mail to the person waits for nobody in the session and may stay unread for ever: it is not open work.
DROP INDEX mail_open;
CREATE INDEX mail_open ON mail (session_id) WHERE state IN ('queued', 'delivered') AND recipient <> 'user';
