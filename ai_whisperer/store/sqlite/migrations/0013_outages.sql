-- How long a model request was held up because its provider was down or could not be reached.
ALTER TABLE step ADD COLUMN outage_seconds REAL NOT NULL DEFAULT 0;
