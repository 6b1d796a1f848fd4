-- What a node shows to another when it passes on what clients ask for. Whoever can read this can read everything else.
ALTER TABLE cluster ADD COLUMN secret text COLLATE "C" NOT NULL
  DEFAULT replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');

-- Whether the node that had the session last was cut off or frozen, and did not end by itself: no task is to blame then.
ALTER TABLE placement ADD COLUMN cut_off boolean NOT NULL DEFAULT false;

-- As before, and keeps for its sessions whether the host is known to have ended.
DROP FUNCTION remove_host(text, bigint);
CREATE FUNCTION remove_host(gone text, last_beat bigint, has_ended boolean DEFAULT true) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM host WHERE id = gone AND (last_beat IS NULL OR beat = last_beat);
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM writer WHERE id = gone;
  UPDATE placement SET target = NULL WHERE target = gone;
  UPDATE placement SET writer_id = NULL, wanted = target IS NOT NULL OR has_work(session_id), cut_off = NOT has_ended
  WHERE writer_id = gone;
  RETURN true;
END $$;
