-- Tags that people give hosts, and those that a session needs: it is only at a host that has them all. Both are JSON.
ALTER TABLE host ADD COLUMN tags text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE session ADD COLUMN needs text COLLATE "C" NOT NULL DEFAULT '[]';

CREATE FUNCTION has_tags(tags text, needs text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT needs = '[]' OR needs::jsonb <@ tags::jsonb
$$;
CREATE FUNCTION needs_of(asked_id text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT needs FROM session WHERE id = asked_id), '[]')
$$;
-- Whether the host has what the session needs now. It is volatile so that it sees what was committed while a statement
-- waited for the row of the session in placement, which `need_tags` always writes.
CREATE FUNCTION fits(asked_host text, asked_id text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT needs_of(asked_id) = '[]' OR EXISTS (
    SELECT 1 FROM host WHERE id = asked_host AND has_tags(tags, needs_of(asked_id)))
$$;

-- Whether agents of the session run programs that another host which may have it holds better than one so strong.
CREATE FUNCTION is_for_stronger(asked_id text, own_strength bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT runs_programs(asked_id) AND EXISTS (
    SELECT 1 FROM host WHERE serves AND state = 'joined' AND strength > own_strength
      AND has_tags(tags, needs_of(asked_id)))
$$;

-- Lets the session need these tags. If it is at a host without them, or on its way to one, it goes to one that has them.
-- Returns whether there is such a session.
CREATE FUNCTION need_tags(asked_id text, wanted_tags text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  is_well boolean;
  aim text;
BEGIN
  -- Whoever claims or moves the session at this moment writes this row too: one of the two sees what the other did.
  INSERT INTO placement (session_id, writer_id, epoch, wanted)
  SELECT asked_id, NULL, coalesce(
    (SELECT epoch FROM notification WHERE session_id = asked_id ORDER BY seq DESC LIMIT 1), 0), has_work(asked_id)
  FROM session WHERE id = asked_id
  ON CONFLICT (session_id) DO NOTHING;
  UPDATE placement SET target = target WHERE session_id = asked_id;
  UPDATE session SET needs = wanted_tags WHERE id = asked_id;
  IF NOT FOUND THEN
    DELETE FROM placement WHERE session_id = asked_id AND writer_id IS NULL;
    RETURN false;
  END IF;
  SELECT coalesce(bool_and(has_tags(host.tags, wanted_tags)), true) INTO is_well
  FROM placement JOIN host ON host.id IN (writer_id, target) WHERE session_id = asked_id;
  IF NOT is_well THEN
    SELECT host.id INTO aim FROM host LEFT JOIN placement ON placement.writer_id = host.id
    WHERE serves AND state = 'joined' AND has_tags(tags, wanted_tags)
    GROUP BY host.id
    ORDER BY coalesce(bool_or(placement.session_id = asked_id), false) DESC, strength DESC, count(placement.session_id),
      host.id
    LIMIT 1;
    UPDATE placement SET target = nullif(aim, writer_id) WHERE session_id = asked_id;
  END IF;
  RETURN true;
END $$;

-- As before; 'needed', and nothing is changed, if a session that is there needs tags that no other host has which takes
-- sessions.
CREATE OR REPLACE FUNCTION drain_host(asked_name text, forced boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  asked host%ROWTYPE;
BEGIN
  PERFORM 1 FROM host WHERE serves ORDER BY id FOR NO KEY UPDATE;
  SELECT * INTO asked FROM host WHERE name = asked_name AND serves;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  IF NOT forced AND asked.state = 'joined' THEN
    IF NOT EXISTS (SELECT 1 FROM host WHERE serves AND state = 'joined' AND id <> asked.id) THEN
      RETURN 'last';
    END IF;
    IF EXISTS (
      SELECT 1 FROM placement JOIN session ON session.id = placement.session_id
      WHERE placement.writer_id = asked.id AND needs <> '[]' AND NOT EXISTS (
        SELECT 1 FROM host WHERE serves AND state = 'joined' AND host.id <> asked.id AND has_tags(tags, needs))) THEN
      RETURN 'needed';
    END IF;
  END IF;
  UPDATE host SET state = 'draining' WHERE id = asked.id;
  -- What was on its way to it may go to any other.
  UPDATE placement SET target = NULL WHERE target = asked.id;
  RETURN 'draining';
END $$;
