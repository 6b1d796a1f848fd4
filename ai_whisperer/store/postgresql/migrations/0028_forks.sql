-- Which session a session was forked from, and what calls with effects outside brought there that it may make again.
CREATE TABLE fork (
  session_id text COLLATE "C" PRIMARY KEY,
  source text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  since bigint NOT NULL,
  paths text COLLATE "C" NOT NULL,
  made text COLLATE "C" NOT NULL,
  calls text COLLATE "C" NOT NULL
);
