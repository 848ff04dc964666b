-- compatible: yes
-- Memberships in several orgs that belong to one person. A user who signs in to one of them
-- with its password may act in all of them. A change of the password increments the epoch,
-- which ends the access that the membership gave before.
CREATE TABLE account_links (
  account_id TEXT NOT NULL,
  org_id     TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  epoch      BIGINT NOT NULL,
  linked_at  BIGINT NOT NULL,
  PRIMARY KEY (org_id, user_id)
) {{without_rowid}};
CREATE UNIQUE INDEX account_links_account ON account_links (account_id, org_id);

-- Finds the key that a rotation replaced.
CREATE INDEX keys_replaced ON keys (org_id, replaced_by) WHERE replaced_by <> '';
