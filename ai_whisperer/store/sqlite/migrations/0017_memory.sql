-- What an agent was told of its memory when a task began: a task that is taken up again tells it the same.
ALTER TABLE task ADD COLUMN notes TEXT;
