-- The limit that an agent is paused for, until it is raised; NULL if a person or another agent paused it.
ALTER TABLE agent ADD COLUMN paused_limit TEXT;
