"""The named queries about nodes and about which of them has which session, beside the schema in `migrations/`."""

from __future__ import annotations

from typing import Final

from ai_whisperer.domain.cluster import NodeState

_LOCKS: Final = """
(SELECT (classid::bigint << 32) | objid::bigint AS key FROM pg_locks
  WHERE locktype='advisory' AND granted AND objsubid=1
    AND database=(SELECT oid FROM pg_database WHERE datname=current_database()))"""
_HAS_LOCK: Final = f"hashtextextended(host.id, 0) IN {_LOCKS}"

LOCK: Final = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))"
BEAT: Final = "UPDATE host SET beat=beat+1, lag_seconds=$2, busy=$3 WHERE id=$1 RETURNING beat"
NODES: Final = f"""
SELECT id, name, address, version, settings, sandbox, strength, serves, state, beat, started_at, {_HAS_LOCK},
  lag_seconds, busy, tags
FROM host ORDER BY name"""
HAS_DEPARTED: Final = "SELECT EXISTS (SELECT 1 FROM departed WHERE id=$1)"
INCARNATION: Final = """
SELECT pg_postmaster_start_time()::text || ' ' || coalesce(host(inet_server_addr()), ''),
  extract(epoch FROM clock_timestamp())::double precision"""
CHORES: Final = """
SELECT
  (SELECT count(*) FROM (SELECT 1 FROM placement WHERE writer_id IS NULL AND wanted LIMIT 10000) AS counted),
  array(SELECT session_id FROM placement WHERE writer_id=$1 AND target IS NOT NULL),
  coalesce((SELECT stated FROM limits WHERE session_id=''), '')"""

CLUSTER: Final = "SELECT id, min_version FROM cluster"
RAY: Final = """
SELECT ray, wanted_hosts, greatest(extract(epoch FROM now()) - kept_at, 0), least_hosts, most_hosts, sessions_each, why
FROM cluster"""
ORDER: Final = """
UPDATE cluster SET ray=$1, launch=$2, sessions_each=$3, kept_at=extract(epoch FROM now())"""
LAUNCH: Final = "SELECT launch FROM cluster"
WANT_BETWEEN: Final = """
UPDATE cluster SET least_hosts=$1, most_hosts=$2, wanted_hosts=least(greatest(wanted_hosts, $1), $2), why=''"""
CHOOSE: Final = """
UPDATE cluster SET wanted_hosts=$1, why=$2
WHERE wanted_hosts=$3 AND $1 BETWEEN least_hosts AND most_hosts RETURNING wanted_hosts"""
"""Unless a person has chosen meanwhile."""
SHED: Final = f"""
UPDATE placement SET target=chosen.id FROM (
  SELECT host.id, placement.session_id FROM host, placement JOIN host AS holder ON holder.id=placement.writer_id
  WHERE host.name=$2 AND host.serves AND host.state='{NodeState.JOINED}' AND placement.writer_id=$1
    AND (host.strength >= holder.strength OR NOT runs_programs(placement.session_id))
    AND has_tags(host.tags, needs_of(placement.session_id))
    AND NOT EXISTS (SELECT 1 FROM placement WHERE target IS NOT NULL)
  ORDER BY placement.epoch, placement.session_id LIMIT 1) AS chosen
WHERE placement.session_id=chosen.session_id AND writer_id=$1 AND target IS NULL
  AND fits(chosen.id, placement.session_id)
RETURNING placement.session_id"""
"""One session, unless one is on its way already: that which was moved least often. None whose agents run programs goes
to a weaker sandbox so, and none to where a tag is missing that it needs."""
KEPT: Final = "UPDATE cluster SET kept_at=extract(epoch FROM now())"
SHOWN_TO_NODES: Final = "SELECT secret FROM cluster"
RAISE_MIN_VERSION: Final = "UPDATE cluster SET min_version=$1"
JOIN: Final = f"""
WITH joined AS (
  INSERT INTO host
  VALUES ($1, $2, $3, $4, $5, $6, $7, '{NodeState.JOINED}', 0, extract(epoch FROM now()), $8, $9, 0, 0, $10)
  ON CONFLICT (name) DO NOTHING RETURNING id)
INSERT INTO writer SELECT id, 1, 0 FROM joined RETURNING id"""
"""Returns nothing if there is a node of that name."""
END_CONNECTIONS: Final = """
SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
WHERE starts_with(application_name, $1) AND pid<>pg_backend_pid() AND usename=current_user
  AND datname=current_database()"""
REMOVE: Final = "SELECT remove_host($1, $2, $3)"
LEAVE: Final = "SELECT remove_host($1, NULL)"
DRAIN: Final = "SELECT drain_host($1, $2)"

_ME: Final = f"""
SELECT id, folder, tags, strength, serves AND strength < (
  SELECT max(strength) FROM host WHERE serves AND state='{NodeState.JOINED}') AS is_weak
FROM host WHERE id=$1 AND state='{NodeState.JOINED}' FOR KEY SHARE"""
"""`is_weak`: programs of agents are held better elsewhere, perhaps where a session may not be that needs tags."""
_KEEP_FILES: Final = """
INSERT INTO files_at SELECT me.folder, held.session_id FROM held, me WHERE me.folder<>'' ON CONFLICT DO NOTHING"""
CLAIM: Final = f"""
WITH me AS MATERIALIZED ({_ME}),
held AS (
INSERT INTO placement AS kept (session_id, writer_id, epoch)
SELECT $2, me.id,
  coalesce((SELECT epoch FROM notification WHERE session_id=$2 ORDER BY seq DESC LIMIT 1), 0) + 1 FROM me
WHERE has_tags(me.tags, needs_of($2)) AND (NOT me.is_weak OR NOT is_for_stronger($2, me.strength)
  OR EXISTS (SELECT 1 FROM placement WHERE session_id=$2 AND target=$1))
ON CONFLICT (session_id) DO UPDATE SET writer_id=excluded.writer_id, epoch=kept.epoch+1, wanted=false, target=NULL
  WHERE NOT EXISTS (SELECT 1 FROM host WHERE id=coalesce(kept.writer_id, nullif(kept.target, excluded.writer_id)))
    AND fits(excluded.writer_id, kept.session_id)
RETURNING session_id, epoch),
noted AS ({_KEEP_FILES})
SELECT epoch FROM held"""
"""Returns nothing if another node has the session or is to have it, or this one takes none, or not this one."""
IS_FOR_STRONGER: Final = "SELECT 1 FROM host WHERE id=$1 AND serves AND is_for_stronger($2, strength)"
NEEDS: Final = "SELECT needs_of($1)"
NEED: Final = "SELECT need_tags($1, $2)"
NEEDS_OF_WAITING: Final = """
SELECT DISTINCT needs FROM placement JOIN session ON session.id=session_id
WHERE writer_id IS NULL AND wanted AND needs<>'[]' LIMIT 100"""
HOLDER: Final = f"""
SELECT placement.writer_id, placement.epoch, host.name, host.address, {_HAS_LOCK}
FROM placement JOIN host ON host.id=placement.writer_id WHERE session_id=$1"""
TAKE: Final = f"""
WITH me AS MATERIALIZED ({_ME}),
free AS (
  SELECT session_id FROM placement, me WHERE writer_id IS NULL AND wanted
    AND (target=$1 OR target IS NULL AND NOT (me.is_weak AND is_for_stronger(session_id, me.strength)))
    AND has_tags(me.tags, needs_of(session_id))
  ORDER BY target IS NULL, session_id LIMIT $2 FOR UPDATE OF placement SKIP LOCKED),
held AS (
  UPDATE placement SET writer_id=me.id, epoch=placement.epoch+1, wanted=false, target=NULL FROM free, me
  WHERE placement.session_id=free.session_id AND fits(me.id, free.session_id)
  RETURNING placement.session_id, placement.epoch),
noted AS ({_KEEP_FILES})
SELECT session_id, epoch FROM held"""
MINE: Final = "SELECT session_id, epoch FROM placement WHERE writer_id=$1"
WANT: Final = """
INSERT INTO placement (session_id, writer_id, epoch, wanted)
SELECT id, NULL, coalesce((SELECT epoch FROM notification WHERE session_id=id ORDER BY seq DESC LIMIT 1), 0), true
FROM unnest($1::text[]) AS given (id) WHERE has_work(id)
ON CONFLICT (session_id) DO NOTHING"""
"""For sessions that no node has ever had."""
RELEASE: Final = """
UPDATE placement SET writer_id=NULL, wanted=target IS NOT NULL OR has_work(session_id), cut_off=false
WHERE session_id=$2 AND writer_id=$1 AND epoch=$3"""
FORGET: Final = """
DELETE FROM placement WHERE session_id=$1 AND writer_id IS NULL AND NOT wanted
  AND NOT EXISTS (SELECT 1 FROM session WHERE id=$1) AND NOT EXISTS (SELECT 1 FROM notification WHERE session_id=$1)"""
"""For a session that was deleted."""
FORGET_FILES: Final = """
DELETE FROM files_at USING host WHERE host.id=$1 AND files_at.folder=host.folder AND session_id=$2
  AND NOT EXISTS (SELECT 1 FROM session WHERE id=$2) AND NOT EXISTS (SELECT 1 FROM notification WHERE session_id=$2)"""
"""Whoever had a session that was deleted has removed its files."""
DELETED_ELSEWHERE: Final = """
SELECT session_id FROM files_at JOIN host USING (folder) WHERE host.id=$1
  AND NOT EXISTS (SELECT 1 FROM session WHERE id=files_at.session_id)
  AND NOT EXISTS (SELECT 1 FROM notification WHERE session_id=files_at.session_id)
  AND NOT EXISTS (SELECT 1 FROM deletion WHERE session_id=files_at.session_id)
  AND NOT EXISTS (SELECT 1 FROM placement WHERE session_id=files_at.session_id AND writer_id IS NOT NULL)"""
WAS_CUT_OFF: Final = "SELECT 1 FROM placement WHERE session_id=$1 AND cut_off"
STILL_MINE: Final = "SELECT 1 FROM placement WHERE session_id=$2 AND writer_id=$1 AND epoch=$3 FOR SHARE"
IS_DELETED: Final = "SELECT 1 FROM deletion WHERE session_id=$1"

MOVE: Final = f"""
INSERT INTO placement AS kept (session_id, writer_id, epoch, wanted, target)
SELECT $1, NULL, coalesce((SELECT epoch FROM notification WHERE session_id=$1 ORDER BY seq DESC LIMIT 1), 0), true, id
FROM host WHERE name=$2 AND serves AND state='{NodeState.JOINED}' AND has_tags(tags, needs_of($1))
ON CONFLICT (session_id) DO UPDATE SET target=nullif(excluded.target, kept.writer_id), wanted=kept.writer_id IS NULL
  WHERE fits(excluded.target, kept.session_id)"""
"""A session that is there already stays there."""
PLACED: Final = """
SELECT coalesce(host.name, ''), coalesce(host.address, ''), epoch FROM placement
LEFT JOIN host ON host.id=writer_id WHERE session_id=$1"""
SESSION_COUNTS: Final = "SELECT writer_id, count(*) FROM placement WHERE writer_id IS NOT NULL GROUP BY writer_id"
