-- All tables as they are in version 22, the first that is kept in PostgreSQL. Both dialects have the same numbers from
-- here on: what one gets in a migration, the other gets in the one of the same number.
-- "row" counts the rows as they come, which SQLite does by itself. "epoch" says which writer wrote an entry of the log.

CREATE TABLE "session" (
  "id" text COLLATE "C" NOT NULL,
  "title" text COLLATE "C" NOT NULL,
  "owner" text COLLATE "C" NOT NULL,
  "created_at" double precision NOT NULL,
  PRIMARY KEY ("id")
);
CREATE INDEX session_by_owner ON session (owner, created_at, id);

CREATE TABLE "deletion" (
  "session_id" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("session_id")
);

CREATE TABLE "agent" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "definition" text COLLATE "C" NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "started" boolean NOT NULL,
  "sleep" text COLLATE "C",
  "reason" text COLLATE "C" NOT NULL,
  "own_tools" text COLLATE "C" NOT NULL,
  "created_at" double precision NOT NULL,
  "started_at" double precision,
  "paused_limit" text COLLATE "C",
  PRIMARY KEY ("session_id", "id")
);

CREATE TABLE "agent_total" (
  "session_id" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "tasks" bigint NOT NULL,
  "usage" text COLLATE "C" NOT NULL,
  "active_at" double precision NOT NULL,
  PRIMARY KEY ("session_id", "agent_id")
);

CREATE TABLE "task" (
  "id" text COLLATE "C" NOT NULL,
  "session_id" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "thread_id" text COLLATE "C" NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "prompt" text COLLATE "C" NOT NULL,
  "arrival" bigint NOT NULL,
  "cause" text COLLATE "C" NOT NULL,
  "priority" text COLLATE "C" NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "mail_id" text COLLATE "C",
  "parent_id" text COLLATE "C",
  "continuation" bigint NOT NULL,
  "attempts" bigint NOT NULL,
  "progress_percent" double precision,
  "progress_note" text COLLATE "C" NOT NULL,
  "result" text COLLATE "C",
  "error" text COLLATE "C",
  "usage" text COLLATE "C" NOT NULL,
  "created_at" double precision NOT NULL,
  "started_at" double precision,
  "finished_at" double precision,
  "root_id" text COLLATE "C",
  "origin" text COLLATE "C",
  "not_before" double precision,
  "restarts" bigint NOT NULL,
  "dismissed_at" double precision,
  "notes" text COLLATE "C",
  "parts" text COLLATE "C",
  "joined_step" text COLLATE "C",
  "erased_at" double precision,
  "row" bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY ("session_id", "id")
);
CREATE INDEX task_by_thread ON task (session_id, agent_id, thread_id, arrival);
CREATE INDEX task_open ON task (session_id) WHERE state IN ('queued', 'running');
CREATE INDEX task_by_root ON task (session_id, root_id) WHERE root_id IS NOT NULL;
CREATE INDEX task_by_session ON task (session_id, "row");
CREATE INDEX task_by_agent ON task (session_id, agent_id, arrival, created_at);
CREATE INDEX task_dead ON task (session_id, finished_at) WHERE state IN ('dead', 'failed');
CREATE INDEX task_dead_letter ON task (session_id, arrival, agent_id)
WHERE state IN ('dead', 'failed') AND dismissed_at IS NULL;

CREATE TABLE "thread" (
  "session_id" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "arrival" bigint NOT NULL,
  "tasks" bigint NOT NULL,
  "first_at" double precision NOT NULL,
  "last_at" double precision NOT NULL,
  PRIMARY KEY ("session_id", "agent_id", "id")
);

CREATE TABLE "compacted" (
  "session_id" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "thread_id" text COLLATE "C" NOT NULL,
  "task_id" text COLLATE "C" NOT NULL,
  "number" bigint NOT NULL,
  "arrival" bigint NOT NULL,
  "compaction" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("session_id", "agent_id", "thread_id")
);

CREATE TABLE "step" (
  "session_id" text COLLATE "C" NOT NULL,
  "task_id" text COLLATE "C" NOT NULL,
  "number" bigint NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "attempt" bigint NOT NULL,
  "failures" bigint NOT NULL,
  "call" text COLLATE "C",
  "answer" text COLLATE "C",
  "result" text COLLATE "C",
  "error" text COLLATE "C",
  "retry_at" double precision,
  "started_at" double precision NOT NULL,
  "finished_at" double precision,
  "requests" bigint NOT NULL,
  "request_seconds" double precision NOT NULL,
  "outage_seconds" double precision NOT NULL,
  "compaction" text COLLATE "C",
  "model" text COLLATE "C" NOT NULL,
  "said" text COLLATE "C",
  PRIMARY KEY ("session_id", "task_id", "number")
);

CREATE TABLE "mail" (
  "id" text COLLATE "C" NOT NULL,
  "session_id" text COLLATE "C" NOT NULL,
  "thread_id" text COLLATE "C" NOT NULL,
  "sender" text COLLATE "C" NOT NULL,
  "sequence" bigint NOT NULL,
  "recipient" text COLLATE "C" NOT NULL,
  "subject" text COLLATE "C" NOT NULL,
  "body" text COLLATE "C" NOT NULL,
  "arrival" bigint NOT NULL,
  "cause" text COLLATE "C" NOT NULL,
  "priority" text COLLATE "C" NOT NULL,
  "reply_to" text COLLATE "C",
  "state" text COLLATE "C" NOT NULL,
  "task_id" text COLLATE "C",
  "created_at" double precision NOT NULL,
  "read_at" double precision,
  "awaited" boolean NOT NULL,
  "origin" text COLLATE "C",
  "erased_at" double precision,
  PRIMARY KEY ("session_id", "id")
);
CREATE UNIQUE INDEX mail_by_sender ON mail (session_id, sender, sequence);
CREATE INDEX mail_by_recipient ON mail (session_id, recipient, arrival);
CREATE INDEX mail_dead ON mail (session_id) WHERE state = 'dead';
CREATE INDEX mail_open ON mail (session_id) WHERE state IN ('queued', 'delivered') AND recipient <> 'user';
CREATE INDEX mail_inbox ON mail (session_id, arrival) WHERE recipient='user' AND state NOT IN ('archived', 'dead');

CREATE TABLE "timer" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "due_at" double precision NOT NULL,
  PRIMARY KEY ("session_id", "id")
);

CREATE TABLE "wait" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "task_id" text COLLATE "C" NOT NULL,
  "target" text COLLATE "C" NOT NULL,
  "target_agent" text COLLATE "C" NOT NULL,
  "arrival" bigint NOT NULL,
  "deadline_at" double precision NOT NULL,
  "ttl_seconds" double precision,
  "created_at" double precision NOT NULL,
  PRIMARY KEY ("session_id", "id")
);

CREATE TABLE "approval" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "task_id" text COLLATE "C" NOT NULL,
  "tool" text COLLATE "C" NOT NULL,
  "arguments" text COLLATE "C" NOT NULL,
  "digest" text COLLATE "C" NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "requested_at" double precision NOT NULL,
  "decided_at" double precision,
  "decided_by" text COLLATE "C",
  "reason" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("session_id", "id")
);
CREATE INDEX approval_by_time ON approval (session_id, requested_at, id);
CREATE INDEX approval_of_task ON approval (session_id, task_id);

CREATE TABLE "question" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "task_id" text COLLATE "C" NOT NULL,
  "question" text COLLATE "C" NOT NULL,
  "schema" text COLLATE "C" NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "asked_at" double precision NOT NULL,
  "deadline_at" double precision,
  "decided_at" double precision,
  "decided_by" text COLLATE "C",
  "answer" text COLLATE "C",
  "reason" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("session_id", "id")
);
CREATE INDEX question_by_time ON question (session_id, asked_at, id);

CREATE TABLE "lock" (
  "session_id" text COLLATE "C" NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "token" bigint NOT NULL,
  "agent_id" text COLLATE "C",
  "task_id" text COLLATE "C",
  "acquired_at" double precision,
  "expires_at" double precision,
  "holder" text COLLATE "C",
  PRIMARY KEY ("session_id", "name")
);

CREATE TABLE "event" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "sender" text COLLATE "C" NOT NULL,
  "cause" text COLLATE "C" NOT NULL,
  "data" text COLLATE "C" NOT NULL,
  "woken" bigint NOT NULL,
  "notified" bigint NOT NULL,
  "created_at" double precision NOT NULL,
  "erased_at" double precision,
  "row" bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY ("session_id", "id")
);
CREATE INDEX event_by_time ON event (session_id, created_at, "row");

CREATE TABLE "schedule" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "definition" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C",
  "paused" boolean NOT NULL,
  "next_at" double precision,
  "last_at" double precision,
  "fired" bigint NOT NULL,
  "cause" text COLLATE "C" NOT NULL,
  "created_at" double precision NOT NULL,
  PRIMARY KEY ("session_id", "id")
);

CREATE TABLE "room" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "title" text COLLATE "C" NOT NULL,
  "members" text COLLATE "C" NOT NULL,
  "hop_limit" bigint NOT NULL,
  "last_number" bigint NOT NULL,
  "seen" text COLLATE "C" NOT NULL,
  "created_at" double precision NOT NULL,
  "erased_until" bigint NOT NULL,
  "deleted_at" double precision,
  PRIMARY KEY ("session_id", "id")
);

CREATE TABLE "message" (
  "session_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "room_id" text COLLATE "C" NOT NULL,
  "number" bigint NOT NULL,
  "sender" text COLLATE "C" NOT NULL,
  "text" text COLLATE "C" NOT NULL,
  "mentions" text COLLATE "C" NOT NULL,
  "asked" text COLLATE "C" NOT NULL,
  "task_id" text COLLATE "C",
  "hops" bigint NOT NULL,
  "cause" text COLLATE "C" NOT NULL,
  "created_at" double precision NOT NULL,
  "parts" text COLLATE "C",
  "erased_at" double precision,
  PRIMARY KEY ("session_id", "room_id", "number")
);
CREATE UNIQUE INDEX message_by_id ON message (session_id, id);

CREATE TABLE "attachment" (
  "session_id" text COLLATE "C" NOT NULL,
  "owner" text COLLATE "C" NOT NULL,
  "number" bigint NOT NULL,
  "digest" text COLLATE "C" NOT NULL,
  "media_type" text COLLATE "C" NOT NULL,
  "size" bigint NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "created_at" double precision NOT NULL,
  PRIMARY KEY ("session_id", "owner", "number")
);
CREATE INDEX attachment_by_time ON attachment (session_id, created_at);
CREATE INDEX attachment_by_digest ON attachment (session_id, digest, created_at);

CREATE TABLE "limits" (
  "session_id" text COLLATE "C" NOT NULL,
  "stated" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("session_id")
);

CREATE TABLE "link" (
  "session_id" text COLLATE "C" NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "sender" text COLLATE "C" NOT NULL,
  "recipient" text COLLATE "C" NOT NULL,
  "count" bigint NOT NULL,
  "last_at" double precision NOT NULL,
  PRIMARY KEY ("session_id", "kind", "sender", "recipient")
);

CREATE TABLE "notification" (
  "session_id" text COLLATE "C" NOT NULL,
  "seq" bigint NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "cause" text COLLATE "C" NOT NULL,
  "at" double precision NOT NULL,
  "params" text COLLATE "C" NOT NULL,
  "shape" bigint,
  "told" bytea,
  "epoch" bigint NOT NULL,
  PRIMARY KEY ("session_id", "seq")
);

CREATE TABLE "horizon" (
  "session_id" text COLLATE "C" NOT NULL,
  "first_seq" bigint NOT NULL,
  "before" double precision NOT NULL,
  "at" double precision NOT NULL,
  "is_done" boolean NOT NULL,
  PRIMARY KEY ("session_id")
);

CREATE TABLE "erasure" (
  "session_id" text COLLATE "C" NOT NULL,
  "agent_id" text COLLATE "C" NOT NULL,
  "thread_id" text COLLATE "C" NOT NULL,
  "last" bigint NOT NULL,
  "at" double precision NOT NULL,
  "told_until" bigint NOT NULL,
  PRIMARY KEY ("session_id", "agent_id", "thread_id")
);

CREATE TABLE "shape" (
  "number" bigint NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "cause" text COLLATE "C" NOT NULL,
  "parts" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("number")
);

-- Who writes: one row for each process that may. `epoch` rises when another takes its place, `commits` with each group.
CREATE TABLE writer (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  epoch bigint NOT NULL,
  commits bigint NOT NULL
);

-- Which writer has which session, and for the how manieth time somebody has it. A session without a row is the writer's
-- who has the database.
CREATE TABLE placement (
  session_id text COLLATE "C" NOT NULL PRIMARY KEY,
  writer_id text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL
);

-- Proves, within the statement that writes group number n, that its writer may write; raises if it may not:
-- WH001 another has its place, WH002 the group is committed already, WH003 the database is older than what the writer
-- knows to be committed, WH004 the sessions that are named are no longer the writer's.
CREATE FUNCTION hold(my_id text, my_epoch bigint, n bigint, sessions text[], epochs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  known writer%ROWTYPE;
  lost text[];
BEGIN
  UPDATE writer SET commits = n WHERE id = my_id AND epoch = my_epoch AND commits = n - 1;
  IF NOT FOUND THEN
    SELECT * INTO known FROM writer WHERE id = my_id;
    IF known.epoch > my_epoch THEN
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
