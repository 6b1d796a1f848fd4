-- Images and files that came with a task or a message. Their content lies beside the database, named by its digest.
ALTER TABLE task ADD COLUMN parts TEXT;
ALTER TABLE message ADD COLUMN parts TEXT;
CREATE TABLE attachment (
  session_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  number INTEGER NOT NULL,
  digest TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size INTEGER NOT NULL,
  name TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, owner, number)
) WITHOUT ROWID;
CREATE INDEX attachment_by_time ON attachment (session_id, created_at);
CREATE INDEX attachment_by_digest ON attachment (session_id, digest, created_at);
