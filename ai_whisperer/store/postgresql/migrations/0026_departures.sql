-- How much the sandbox of a host holds: 0 if there is none. Sessions whose agents run programs go where it holds most.
ALTER TABLE host ADD COLUMN strength bigint NOT NULL DEFAULT 0;

-- Whether agents of the session may run programs: a name in their definitions, which are JSON, stands in quotes.
CREATE FUNCTION runs_programs(asked_id text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM agent WHERE session_id = asked_id
    AND (definition LIKE '%"run_command"%' OR definition LIKE '%"run_python"%'))
$$;

-- The hosts that have left or were let go, for a month. One that is in neither table has joined at a time that this
-- database has never seen: it went back.
CREATE TABLE departed (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  at double precision NOT NULL
);

-- Which data folders may have files of which sessions: those of a host are in its folder, unless all share one ('').
ALTER TABLE host ADD COLUMN folder text COLLATE "C" NOT NULL DEFAULT '';
CREATE TABLE files_at (
  folder text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (folder, session_id)
);

-- As before, and keeps that the host was here.
CREATE OR REPLACE FUNCTION remove_host(gone text, last_beat bigint, has_ended boolean DEFAULT true) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM host WHERE id = gone AND (last_beat IS NULL OR beat = last_beat);
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM departed WHERE at < extract(epoch FROM now()) - 30 * 86400;
  INSERT INTO departed VALUES (gone, extract(epoch FROM now())) ON CONFLICT (id) DO NOTHING;
  DELETE FROM writer WHERE id = gone;
  UPDATE placement SET target = NULL WHERE target = gone;
  UPDATE placement SET writer_id = NULL, wanted = target IS NOT NULL OR has_work(session_id), cut_off = NOT has_ended
  WHERE writer_id = gone;
  RETURN true;
END $$;

-- As before, but a writer without a row that was never let go is one that this database has never seen: WH003, with all
-- that it has committed.
CREATE OR REPLACE FUNCTION hold(my_id text, my_epoch bigint, n bigint, sessions text[], epochs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  known writer%ROWTYPE;
  lost text[];
BEGIN
  UPDATE writer SET commits = n WHERE id = my_id AND epoch = my_epoch AND commits = n - 1;
  IF NOT FOUND THEN
    SELECT * INTO known FROM writer WHERE id = my_id;
    IF known.id IS NULL AND NOT EXISTS (SELECT 1 FROM departed WHERE id = my_id) THEN
      RAISE EXCEPTION '%', n - 1 USING ERRCODE = 'WH003';
    ELSIF known.id IS NULL OR known.epoch > my_epoch THEN
      RAISE EXCEPTION 'the epoch is %, not %', known.epoch, my_epoch USING ERRCODE = 'WH001';
    ELSIF known.epoch = my_epoch AND known.commits >= n THEN
      RAISE EXCEPTION 'group % is committed', n USING ERRCODE = 'WH002';
    END IF;
    RAISE EXCEPTION '%', CASE WHEN known.epoch = my_epoch THEN n - 1 - known.commits END USING ERRCODE = 'WH003';
  END IF;
  IF cardinality(sessions) > 0 THEN
    PERFORM 1 FROM placement WHERE session_id = ANY(sessions) ORDER BY session_id FOR SHARE;
    SELECT array_agg(held.id ORDER BY held.id) INTO lost
    FROM unnest(sessions, epochs) AS held (id, epoch) LEFT JOIN placement ON placement.session_id = held.id
    WHERE placement.epoch IS DISTINCT FROM held.epoch OR placement.writer_id IS DISTINCT FROM my_id;
    IF lost IS NOT NULL THEN
      RAISE EXCEPTION '%', array_to_string(lost, ', ') USING ERRCODE = 'WH004';
    END IF;
  END IF;
END $$;
