-- The sessions whose deletion has begun; what is left of them goes when the database is opened.
CREATE TABLE deletion (session_id TEXT PRIMARY KEY) WITHOUT ROWID;
