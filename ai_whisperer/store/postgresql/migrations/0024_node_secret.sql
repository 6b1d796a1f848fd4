-- What a node shows to another when it passes on what clients ask for. Whoever can read this can read everything else.
ALTER TABLE cluster ADD COLUMN secret text COLLATE "C" NOT NULL
  DEFAULT replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
