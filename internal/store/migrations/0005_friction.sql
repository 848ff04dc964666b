-- compatible: yes
-- Friction reports, one row for each fingerprint of an org.
CREATE TABLE friction (
  org_id        TEXT NOT NULL,
  fingerprint   TEXT NOT NULL,
  title         TEXT NOT NULL,
  category      TEXT NOT NULL,
  problem       TEXT NOT NULL,
  suggested_fix TEXT NOT NULL,
  priority      TEXT NOT NULL,
  reports       BIGINT NOT NULL,
  proposal_id   TEXT NOT NULL,
  first_at      BIGINT NOT NULL,
  last_at       BIGINT NOT NULL,
  last_by       TEXT NOT NULL,
  PRIMARY KEY (org_id, fingerprint)
) {{without_rowid}};
CREATE INDEX friction_latest ON friction (org_id, last_at, fingerprint);

-- The latest reports of each fingerprint; the oldest of them without evidence.
CREATE TABLE friction_reports (
  org_id      TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  seq         BIGINT NOT NULL,
  reporter    TEXT NOT NULL,
  occurrence  TEXT NOT NULL,
  evidence    TEXT NOT NULL,
  at          BIGINT NOT NULL,
  PRIMARY KEY (org_id, fingerprint, seq)
) {{without_rowid}};
CREATE UNIQUE INDEX friction_occurrences ON friction_reports (org_id, fingerprint, reporter, occurrence) WHERE occurrence <> '';

-- Settings of an org that differ from the defaults.
CREATE TABLE org_settings (
  org_id TEXT NOT NULL,
  name   TEXT NOT NULL,
  value  TEXT NOT NULL,
  PRIMARY KEY (org_id, name)
) {{without_rowid}};
