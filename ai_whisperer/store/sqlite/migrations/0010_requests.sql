-- How many model requests a step has made, and how long they took together. Of finished tasks nobody asks any more.
ALTER TABLE step ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN request_seconds REAL NOT NULL DEFAULT 0;
UPDATE step SET
  requests = failures + (state<>'started'),
  request_seconds = max(coalesce(finished_at - started_at, 0), 0)
WHERE kind='model' AND (session_id, task_id) IN (
  SELECT session_id, id FROM task WHERE state NOT IN ('completed', 'continued'));
