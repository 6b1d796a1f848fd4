ALTER TABLE agent ADD COLUMN started_at REAL;

ALTER TABLE task ADD COLUMN root_id TEXT;
ALTER TABLE task ADD COLUMN origin TEXT;
ALTER TABLE task ADD COLUMN not_before REAL;
ALTER TABLE task ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX task_by_root ON task (session_id, root_id) WHERE root_id IS NOT NULL;

ALTER TABLE mail ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mail ADD COLUMN origin TEXT;

CREATE TABLE wait (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  target TEXT NOT NULL,
  target_agent TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  deadline_at REAL NOT NULL,
  ttl_seconds REAL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;

CREATE TABLE lock (
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  token INTEGER NOT NULL,
  agent_id TEXT,
  task_id TEXT,
  acquired_at REAL,
  expires_at REAL,
  PRIMARY KEY (session_id, name)
) WITHOUT ROWID;

CREATE TABLE event (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  sender TEXT NOT NULL,
  cause TEXT NOT NULL,
  data TEXT NOT NULL,
  woken INTEGER NOT NULL,
  notified INTEGER NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
);
CREATE INDEX event_by_time ON event (session_id, created_at);

CREATE TABLE schedule (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  definition TEXT NOT NULL,
  agent_id TEXT,
  paused INTEGER NOT NULL,
  next_at REAL,
  last_at REAL,
  fired INTEGER NOT NULL,
  cause TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;

CREATE TABLE room (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  members TEXT NOT NULL,
  hop_limit INTEGER NOT NULL,
  last_number INTEGER NOT NULL,
  seen TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;

CREATE TABLE message (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  room_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  sender TEXT NOT NULL,
  text TEXT NOT NULL,
  mentions TEXT NOT NULL,
  asked TEXT NOT NULL,
  task_id TEXT,
  hops INTEGER NOT NULL,
  cause TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, room_id, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX message_by_id ON message (session_id, id);
