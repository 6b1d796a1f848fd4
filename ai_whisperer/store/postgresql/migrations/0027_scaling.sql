-- How much each host has to do, as it says when it beats: how late its event loop is, and how much of a processor the
-- process takes, both averaged over some seconds.
ALTER TABLE host ADD COLUMN lag_seconds double precision NOT NULL DEFAULT 0;
ALTER TABLE host ADD COLUMN busy double precision NOT NULL DEFAULT 0;

-- Between which numbers the keeper chooses how many hosts are wanted, for how many sessions each, and why it last did.
ALTER TABLE cluster ADD COLUMN least_hosts bigint NOT NULL DEFAULT 0;
ALTER TABLE cluster ADD COLUMN most_hosts bigint NOT NULL DEFAULT 0;
ALTER TABLE cluster ADD COLUMN sessions_each bigint NOT NULL DEFAULT 100;
ALTER TABLE cluster ADD COLUMN why text COLLATE "C" NOT NULL DEFAULT '';
UPDATE cluster SET least_hosts = wanted_hosts, most_hosts = wanted_hosts;
