-- How a conversation was made shorter, with the step that did it.
ALTER TABLE step ADD COLUMN compaction TEXT;

-- The latest compaction of each thread of an agent: what is before it is not read again.
CREATE TABLE compacted (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  arrival INTEGER NOT NULL,
  compaction TEXT NOT NULL,
  PRIMARY KEY (session_id, agent_id, thread_id)
) WITHOUT ROWID;
