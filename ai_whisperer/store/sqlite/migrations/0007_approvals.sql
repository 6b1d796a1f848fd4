CREATE TABLE approval (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments TEXT NOT NULL,
  digest TEXT NOT NULL,
  state TEXT NOT NULL,
  requested_at REAL NOT NULL,
  decided_at REAL,
  decided_by TEXT,
  reason TEXT NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE INDEX approval_by_time ON approval (session_id, requested_at, id);
CREATE INDEX approval_of_task ON approval (session_id, task_id);
