-- What a cluster that Ray runs is to have: how many nodes, with which settings (JSON), at which Ray. Empty without Ray.
-- `kept_at` is when the keeper, which runs in Ray, last saw both Ray and this database.
ALTER TABLE cluster ADD COLUMN ray text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cluster ADD COLUMN wanted_hosts bigint NOT NULL DEFAULT 0;
ALTER TABLE cluster ADD COLUMN launch text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cluster ADD COLUMN kept_at double precision NOT NULL DEFAULT 0;
