-- What the tasks of an agent have used, without those that run, so that nobody has to add it up again.
CREATE TABLE agent_total (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  tasks INTEGER NOT NULL,
  usage TEXT NOT NULL,
  active_at REAL NOT NULL,
  PRIMARY KEY (session_id, agent_id)
) WITHOUT ROWID;
INSERT INTO agent_total
SELECT task.session_id, task.agent_id,
  count(task.started_at) FILTER (WHERE task.state<>'running'),
  json_object(
    'input_tokens', coalesce(sum(usage->>'input_tokens') FILTER (WHERE task.state<>'running'), 0),
    'output_tokens', coalesce(sum(usage->>'output_tokens') FILTER (WHERE task.state<>'running'), 0),
    'cached_tokens', coalesce(sum(usage->>'cached_tokens') FILTER (WHERE task.state<>'running'), 0),
    'cost_usd', sum(usage->>'cost_usd') FILTER (WHERE task.state<>'running'),
    'model_calls', coalesce(sum(usage->>'model_calls') FILTER (WHERE task.state<>'running'), 0),
    'tool_calls', coalesce(sum(usage->>'tool_calls') FILTER (WHERE task.state<>'running'), 0),
    'wall_seconds', coalesce(sum(usage->>'wall_seconds') FILTER (WHERE task.state<>'running'), 0),
    'cpu_seconds', coalesce(sum(usage->>'cpu_seconds') FILTER (WHERE task.state<>'running'), 0),
    'memory_bytes', coalesce(max(usage->>'memory_bytes') FILTER (WHERE task.state<>'running'), 0),
    'mails_sent', coalesce(sum(usage->>'mails_sent') FILTER (WHERE task.state<>'running'), 0),
    'unpriced_tokens', coalesce(sum(CASE WHEN usage->>'cost_usd' IS NULL
      THEN coalesce(usage->>'input_tokens', 0) + coalesce(usage->>'output_tokens', 0)
      ELSE usage->>'unpriced_tokens' END) FILTER (WHERE task.state<>'running'), 0)),
  max(coalesce(max(agent.active_at), 0), coalesce(max(task.started_at), 0), coalesce(max(task.finished_at), 0))
FROM task LEFT JOIN agent ON agent.session_id=task.session_id AND agent.id=task.agent_id
GROUP BY task.session_id, task.agent_id;
ALTER TABLE agent DROP COLUMN active_at;

-- The threads of each agent, and how many tasks are in them.
CREATE TABLE thread (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  id TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  tasks INTEGER NOT NULL,
  first_at REAL NOT NULL,
  last_at REAL NOT NULL,
  PRIMARY KEY (session_id, agent_id, id)
) WITHOUT ROWID;
INSERT INTO thread
SELECT session_id, agent_id, thread_id, min(arrival), count(*), min(created_at), max(created_at)
FROM task GROUP BY session_id, agent_id, thread_id;

-- What failed lately is found without what failed before; the dead letters are counted without their tasks.
DROP INDEX task_dead;
CREATE INDEX task_dead ON task (session_id, finished_at) WHERE state IN ('dead', 'failed');
DROP INDEX task_dead_letter;
CREATE INDEX task_dead_letter ON task (session_id, arrival, agent_id)
WHERE state IN ('dead', 'failed') AND dismissed_at IS NULL;
