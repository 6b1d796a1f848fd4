-- What has no content any more, and since when: its row stays, so that nothing is done twice under its id.
ALTER TABLE task ADD COLUMN erased_at REAL;
ALTER TABLE mail ADD COLUMN erased_at REAL;
ALTER TABLE event ADD COLUMN erased_at REAL;
ALTER TABLE message ADD COLUMN erased_at REAL;

-- A room that was deleted is kept for its numbers.
ALTER TABLE room ADD COLUMN erased_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE room ADD COLUMN deleted_at REAL;

-- Where the log of a session begins, and before which time what has ended goes; is_done when it has gone.
CREATE TABLE horizon (
  session_id TEXT PRIMARY KEY,
  first_seq INTEGER NOT NULL,
  before REAL NOT NULL,
  at REAL NOT NULL,
  is_done INTEGER NOT NULL
) WITHOUT ROWID;

-- Conversations that are gone, of which something may be left. It goes in slices, and then the row.
CREATE TABLE erasure (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  last INTEGER NOT NULL,
  at REAL NOT NULL,
  told_until INTEGER NOT NULL,
  PRIMARY KEY (session_id, agent_id, thread_id)
) WITHOUT ROWID;
