-- What agents ask people.
CREATE TABLE question (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  question TEXT NOT NULL,
  schema TEXT NOT NULL,
  state TEXT NOT NULL,
  asked_at REAL NOT NULL,
  deadline_at REAL,
  decided_at REAL,
  decided_by TEXT,
  answer TEXT,
  reason TEXT NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE INDEX question_by_time ON question (session_id, asked_at, id);
