-- Which model the last attempt of a request asked, if the agent has several.
ALTER TABLE step ADD COLUMN model TEXT NOT NULL DEFAULT '';
