-- When a person dismissed a dead letter.
ALTER TABLE task ADD COLUMN dismissed_at REAL;
CREATE INDEX task_dead_letter ON task (session_id, arrival) WHERE state IN ('dead', 'failed') AND dismissed_at IS NULL;
