-- The tags that a node has to have to take the session, as JSON. A data folder has one node: there it says nothing.
ALTER TABLE session ADD COLUMN needs TEXT NOT NULL DEFAULT '[]';
