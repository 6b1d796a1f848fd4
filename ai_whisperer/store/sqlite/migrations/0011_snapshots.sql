-- Who reached whom, in which way, how often, and when last.
CREATE TABLE link (
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  count INTEGER NOT NULL,
  last_at REAL NOT NULL,
  PRIMARY KEY (session_id, kind, sender, recipient)
) WITHOUT ROWID;
INSERT INTO link
SELECT session_id, 'mail', sender, recipient, count(*), max(created_at) FROM mail GROUP BY session_id, sender, recipient;
INSERT INTO link
SELECT session_id, 'switch', sender, recipient, count(*), max(created_at) FROM mail
WHERE awaited GROUP BY session_id, sender, recipient;
INSERT INTO link
SELECT given.session_id, 'delegation', giver.agent_id, given.agent_id, count(*), max(given.created_at)
FROM task given JOIN task giver ON giver.session_id=given.session_id AND giver.id=given.parent_id
WHERE given.kind='delegated_task' GROUP BY given.session_id, giver.agent_id, given.agent_id;
INSERT INTO link
SELECT task.session_id, 'event', event.sender, task.agent_id, count(*), max(task.created_at)
FROM task JOIN event ON event.session_id=task.session_id AND 'event:' || event.id=task.cause
WHERE task.kind IN ('event', 'wake_up') AND (event.sender='user' OR (event.session_id, event.sender) IN
  (SELECT session_id, id FROM agent))
GROUP BY task.session_id, event.sender, task.agent_id;

CREATE INDEX mail_inbox ON mail (session_id, arrival) WHERE recipient='user' AND state NOT IN ('archived', 'dead');

-- When a task ended that was taken up again, and so does not tell it any more.
ALTER TABLE agent ADD COLUMN active_at REAL;
