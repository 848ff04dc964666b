-- compatible: no
-- Clients of an org can be edited, and their secrets rotated: the secret before the last
-- rotation works until its end, if it has one.

ALTER TABLE oauth_clients ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE oauth_clients ADD COLUMN old_secret_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE oauth_clients ADD COLUMN old_secret_expires_at BIGINT NOT NULL DEFAULT 0;
