-- The newest tasks of a session, which are its last rows, and of an agent are found without reading all of them.
CREATE INDEX task_by_session ON task (session_id);
CREATE INDEX task_by_agent ON task (session_id, agent_id, arrival, created_at);
