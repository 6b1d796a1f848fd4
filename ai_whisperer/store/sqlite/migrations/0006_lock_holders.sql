-- Who has a lock: the agent, or a person or program, which has no task. A lock without a holder is free.
ALTER TABLE lock ADD COLUMN holder TEXT;
UPDATE lock SET holder = agent_id WHERE task_id IS NOT NULL;
