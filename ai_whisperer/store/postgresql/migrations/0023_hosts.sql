-- Several processes share the database. Each has a row in host and one in writer, and each session is at one of them.

-- One row: which cluster this is, and the oldest version that may join it.
CREATE TABLE cluster (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  min_version text COLLATE "C" NOT NULL
);
INSERT INTO cluster VALUES (gen_random_uuid()::text, '0');

-- The processes that have joined. `beat` rises while the process lives; `serves` is whether it takes sessions that have
-- work and nobody. A process holds the advisory lock hashtextextended(id, 0) as long as its connection that beats lives.
CREATE TABLE host (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  version text COLLATE "C" NOT NULL,
  settings text COLLATE "C" NOT NULL,
  sandbox text COLLATE "C" NOT NULL,
  serves boolean NOT NULL,
  state text COLLATE "C" NOT NULL,
  beat bigint NOT NULL,
  started_at double precision NOT NULL
);
CREATE UNIQUE INDEX host_by_name ON host (name);

-- A session with a row that names no writer is nobody's. It is `wanted` if it has something to do; `target` is the host
-- that it is moved to.
ALTER TABLE placement ALTER COLUMN writer_id DROP NOT NULL;
ALTER TABLE placement ADD COLUMN wanted boolean NOT NULL DEFAULT false;
ALTER TABLE placement ADD COLUMN target text COLLATE "C";
CREATE INDEX placement_by_writer ON placement (writer_id);
CREATE INDEX placement_wanted ON placement (session_id) WHERE writer_id IS NULL AND wanted;
CREATE INDEX placement_moving ON placement (writer_id) WHERE target IS NOT NULL;

-- Whether a session that belongs to somebody does something by itself once it is open.
CREATE FUNCTION has_work(wanted_id text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM session WHERE id = wanted_id) AND (
    EXISTS (SELECT 1 FROM task WHERE session_id = wanted_id AND state IN ('queued', 'running'))
    OR EXISTS (SELECT 1 FROM mail WHERE session_id = wanted_id AND state IN ('queued', 'delivered')
      AND recipient <> 'user')
    OR EXISTS (SELECT 1 FROM timer WHERE session_id = wanted_id)
    OR EXISTS (SELECT 1 FROM wait WHERE session_id = wanted_id)
    OR EXISTS (SELECT 1 FROM lock WHERE session_id = wanted_id AND holder IS NOT NULL)
    OR EXISTS (SELECT 1 FROM schedule WHERE session_id = wanted_id AND NOT paused AND next_at IS NOT NULL))
$$;

-- Lets a host be gone: nothing that it may still send is written after this, and its sessions are nobody's. With
-- `last_beat` only if it has not beaten since. Returns whether it was there.
CREATE FUNCTION remove_host(gone text, last_beat bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM host WHERE id = gone AND (last_beat IS NULL OR beat = last_beat);
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM writer WHERE id = gone;
  UPDATE placement SET target = NULL WHERE target = gone;
  UPDATE placement SET writer_id = NULL, wanted = target IS NOT NULL OR has_work(session_id) WHERE writer_id = gone;
  RETURN true;
END $$;

-- As before, but a writer without a row is one that was removed: WH001 too.
CREATE OR REPLACE FUNCTION hold(my_id text, my_epoch bigint, n bigint, sessions text[], epochs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  known writer%ROWTYPE;
  lost text[];
BEGIN
  UPDATE writer SET commits = n WHERE id = my_id AND epoch = my_epoch AND commits = n - 1;
  IF NOT FOUND THEN
    SELECT * INTO known FROM writer WHERE id = my_id;
    IF known.id IS NULL OR known.epoch > my_epoch THEN
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
