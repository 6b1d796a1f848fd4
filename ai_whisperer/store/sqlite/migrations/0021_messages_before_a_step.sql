-- Messages that went into a task at work: what was said before a step, and the step before which a message stands.
ALTER TABLE step ADD COLUMN said TEXT;
ALTER TABLE task ADD COLUMN joined_step TEXT;
