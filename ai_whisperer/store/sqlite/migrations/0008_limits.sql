-- The limits that a session states, and under the empty id those of the server: JSON, only what is stated.
CREATE TABLE limits (session_id TEXT PRIMARY KEY, stated TEXT NOT NULL) WITHOUT ROWID;
