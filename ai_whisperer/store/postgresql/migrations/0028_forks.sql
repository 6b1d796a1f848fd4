-- Which session a session was forked from, what effects it may have, and what calls brought there that it does not repeat.
CREATE TABLE fork (
  session_id text COLLATE "C" PRIMARY KEY,
  source text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  since bigint NOT NULL,
  effects text COLLATE "C" NOT NULL,
  paths text COLLATE "C" NOT NULL,
  made text COLLATE "C" NOT NULL,
  calls text COLLATE "C" NOT NULL
);
