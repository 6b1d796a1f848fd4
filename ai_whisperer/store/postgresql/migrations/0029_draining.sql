-- Lets a host take no more sessions and give its own to others. Returns 'draining'; 'last', and nothing is changed, if no
-- other would take them, unless it is `forced`; nothing if no host of that name takes sessions. Of two that are drained at
-- the same time, the later one sees that the other takes none any more.
CREATE FUNCTION drain_host(asked_name text, forced boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  asked host%ROWTYPE;
BEGIN
  PERFORM 1 FROM host WHERE serves ORDER BY id FOR NO KEY UPDATE;
  SELECT * INTO asked FROM host WHERE name = asked_name AND serves;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  IF NOT forced AND asked.state = 'joined' AND NOT EXISTS (
    SELECT 1 FROM host WHERE serves AND state = 'joined' AND id <> asked.id) THEN
    RETURN 'last';
  END IF;
  UPDATE host SET state = 'draining' WHERE id = asked.id;
  -- What was on its way to it may go to any other.
  UPDATE placement SET target = NULL WHERE target = asked.id;
  RETURN 'draining';
END $$;
