-- compatible: yes
-- Sign-in, and the grants and tokens of the authorization server. Passwords, tokens, codes
-- and links are stored as hashes only.

CREATE TABLE passwords (
  org_id     TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  hash       TEXT NOT NULL,
  generation BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, user_id)
) {{without_rowid}};

CREATE TABLE login_links (
  hash       TEXT PRIMARY KEY,
  org_id     TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
) {{without_rowid}};
CREATE INDEX login_links_end ON login_links (expires_at);

CREATE TABLE sessions (
  hash       TEXT PRIMARY KEY,
  data       TEXT NOT NULL,
  expires_at BIGINT NOT NULL
) {{without_rowid}};
CREATE INDEX sessions_end ON sessions (expires_at);

CREATE TABLE oauth_clients (
  id            TEXT PRIMARY KEY,
  secret_hash   TEXT NOT NULL,
  name          TEXT NOT NULL,
  method        TEXT NOT NULL,
  redirect_uris TEXT NOT NULL,
  scopes        TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  used_at       BIGINT NOT NULL
) {{without_rowid}};
CREATE INDEX oauth_clients_unused ON oauth_clients (used_at, created_at);

-- Authorization requests whose user has not decided yet.
CREATE TABLE oauth_requests (
  hash       TEXT PRIMARY KEY,
  data       TEXT NOT NULL,
  expires_at BIGINT NOT NULL
) {{without_rowid}};
CREATE INDEX oauth_requests_end ON oauth_requests (expires_at);

CREATE TABLE oauth_grants (
  id                 TEXT PRIMARY KEY,
  org_id             TEXT NOT NULL,
  kind               TEXT NOT NULL,
  principal_id       TEXT NOT NULL,
  client_id          TEXT NOT NULL,
  scopes             TEXT NOT NULL,
  audience           TEXT NOT NULL,
  created_at         BIGINT NOT NULL,
  revoked_at         BIGINT NOT NULL,
  ends_at            BIGINT NOT NULL,
  code_hash          TEXT NOT NULL,
  code_expires_at    BIGINT NOT NULL,
  code_used_at       BIGINT NOT NULL,
  challenge          TEXT NOT NULL,
  redirect_uri       TEXT NOT NULL,
  refresh_hash       TEXT NOT NULL,
  refresh_expires_at BIGINT NOT NULL,
  version            BIGINT NOT NULL
) {{without_rowid}};
CREATE UNIQUE INDEX oauth_grants_code ON oauth_grants (code_hash) WHERE code_hash <> '';
CREATE INDEX oauth_grants_end ON oauth_grants (ends_at);

-- Every refresh token that a grant ever had, to detect reuse.
CREATE TABLE oauth_refresh (
  hash     TEXT PRIMARY KEY,
  grant_id TEXT NOT NULL
) {{without_rowid}};
CREATE INDEX oauth_refresh_grant ON oauth_refresh (grant_id);

CREATE TABLE oauth_tokens (
  hash       TEXT PRIMARY KEY,
  id         TEXT NOT NULL,
  grant_id   TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  audience   TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT NOT NULL
) {{without_rowid}};
CREATE INDEX oauth_tokens_grant ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_end ON oauth_tokens (expires_at);
