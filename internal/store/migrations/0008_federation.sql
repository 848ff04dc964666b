-- compatible: no
-- Identities at external providers, and clients that an admin of an org registered. A
-- client without an org registered itself.

CREATE TABLE identities (
  org_id     TEXT NOT NULL,
  issuer     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  label      TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, issuer, subject)
) {{without_rowid}};
CREATE UNIQUE INDEX identities_user ON identities (org_id, user_id, issuer);

ALTER TABLE oauth_clients ADD COLUMN org_id TEXT NOT NULL DEFAULT '';
ALTER TABLE oauth_clients ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
CREATE INDEX oauth_clients_org ON oauth_clients (org_id, id) WHERE org_id <> '';

CREATE INDEX oauth_grants_principal ON oauth_grants (org_id, kind, principal_id, id);
CREATE INDEX oauth_grants_client ON oauth_grants (client_id);
