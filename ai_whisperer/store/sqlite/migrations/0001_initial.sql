CREATE TABLE agent (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  definition TEXT NOT NULL,
  state TEXT NOT NULL,
  started INTEGER NOT NULL,
  sleep TEXT,
  reason TEXT NOT NULL,
  own_tools TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;

CREATE TABLE task (
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  prompt TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  cause TEXT NOT NULL,
  priority TEXT NOT NULL,
  state TEXT NOT NULL,
  mail_id TEXT,
  parent_id TEXT,
  continuation INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  progress_percent REAL,
  progress_note TEXT NOT NULL,
  result TEXT,
  error TEXT,
  usage TEXT NOT NULL,
  created_at REAL NOT NULL,
  started_at REAL,
  finished_at REAL,
  PRIMARY KEY (session_id, id)
);
CREATE INDEX task_by_thread ON task (session_id, agent_id, thread_id, arrival);
CREATE INDEX task_open ON task (session_id) WHERE state IN ('queued', 'running');
CREATE INDEX task_dead ON task (session_id) WHERE state IN ('dead', 'failed');

CREATE TABLE step (
  session_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  call TEXT,
  answer TEXT,
  result TEXT,
  error TEXT,
  retry_at REAL,
  started_at REAL NOT NULL,
  finished_at REAL,
  PRIMARY KEY (session_id, task_id, number)
) WITHOUT ROWID;

CREATE TABLE mail (
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL,
  body TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  cause TEXT NOT NULL,
  priority TEXT NOT NULL,
  reply_to TEXT,
  state TEXT NOT NULL,
  task_id TEXT,
  created_at REAL NOT NULL,
  read_at REAL,
  PRIMARY KEY (session_id, id)
);
CREATE UNIQUE INDEX mail_by_sender ON mail (session_id, sender, sequence);
CREATE INDEX mail_by_recipient ON mail (session_id, recipient, arrival);
CREATE INDEX mail_open ON mail (session_id) WHERE state IN ('queued', 'delivered');
CREATE INDEX mail_dead ON mail (session_id) WHERE state = 'dead';

CREATE TABLE timer (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  due_at REAL NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;

CREATE TABLE notification (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  cause TEXT NOT NULL,
  at REAL NOT NULL,
  params TEXT NOT NULL,
  PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;
