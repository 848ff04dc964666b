-- compatible: no
-- Administration: disabled principals, invitations and the audit log.

ALTER TABLE principals ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;
UPDATE principals SET disabled = 1 WHERE kind = 'agent' AND id IN (SELECT id FROM agents WHERE disabled = 1);

-- The successor after a rotation. A key is rotated only once.
ALTER TABLE keys ADD COLUMN replaced_by TEXT NOT NULL DEFAULT '';
CREATE INDEX keys_by_principal ON keys (org_id, kind, principal_id, id);

CREATE TABLE invitations (
  id          TEXT PRIMARY KEY,
  hash        TEXT NOT NULL UNIQUE,
  org_id      TEXT NOT NULL REFERENCES orgs (id),
  user_id     TEXT NOT NULL,
  name        TEXT NOT NULL,
  admin       INTEGER NOT NULL,
  created_at  BIGINT NOT NULL,
  created_by  TEXT NOT NULL,
  expires_at  BIGINT NOT NULL,
  accepted_at BIGINT NOT NULL,
  revoked_at  BIGINT NOT NULL
);
CREATE INDEX invitations_by_org ON invitations (org_id, id);

-- Append-only.
CREATE TABLE audit (
  org_id     TEXT NOT NULL,
  at         BIGINT NOT NULL,
  id         TEXT NOT NULL,
  actor      TEXT NOT NULL,
  key_id     TEXT NOT NULL,
  action     TEXT NOT NULL,
  target     TEXT NOT NULL,
  detail     TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  code       TEXT NOT NULL,
  request_id TEXT NOT NULL,
  address    TEXT NOT NULL,
  PRIMARY KEY (org_id, at, id)
) {{without_rowid}};
CREATE INDEX audit_actor ON audit (org_id, actor, at, id);
CREATE INDEX audit_action ON audit (org_id, action, at, id);
