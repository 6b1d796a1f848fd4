-- Notifications are kept without their keys: the number of a shape, which says what the values are, and the values.
-- Those that are there stay as they are, with their names and their params as JSON, which are empty in all others.
ALTER TABLE notification ADD COLUMN shape INTEGER;
ALTER TABLE notification ADD COLUMN told BLOB;
CREATE TABLE shape (
  number INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  cause TEXT NOT NULL,
  parts TEXT NOT NULL
) WITHOUT ROWID;
