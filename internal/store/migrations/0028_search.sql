-- compatible: no
-- The text index of each org's proposals; see internal/textindex. It replaces the index of the engine,
-- which held the words of all orgs. Older programs know only that one.
DROP TABLE proposal_search;

-- Who may change the index of an org, until when.
CREATE TABLE search_orgs (
  org_id TEXT PRIMARY KEY REFERENCES orgs (id),
  owner  TEXT NOT NULL,
  until  BIGINT NOT NULL
) {{without_rowid}};

-- state: 0 being written, 1 in use, 2 replaced by others at the time changed_at. dead are the documents
-- that have a newer version in another segment, in base64. Numbers of segments are never used again.
CREATE TABLE search_segments (
  org_id     TEXT NOT NULL,
  segment    BIGINT NOT NULL,
  state      INTEGER NOT NULL,
  docs       INTEGER NOT NULL,
  dead_docs  INTEGER NOT NULL,
  bytes      BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  dead       TEXT NOT NULL,
  PRIMARY KEY (org_id, segment)
);

-- Tables with columns or keys that the engines write differently. search_waiting has proposals that
-- were submitted or changed and are not indexed yet. changed is 0 for a new one, of which no segment has
-- an older version.
-- @sqlite
CREATE TABLE search_pages (
  org_id  TEXT NOT NULL,
  segment BIGINT NOT NULL,
  page    INTEGER NOT NULL,
  data    BLOB NOT NULL,
  PRIMARY KEY (org_id, segment, page)
);
CREATE TABLE search_waiting (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  org_id      TEXT NOT NULL,
  proposal_id TEXT NOT NULL,
  changed     INTEGER NOT NULL
);
CREATE INDEX search_waiting_org ON search_waiting (org_id, seq);
-- @postgres
CREATE TABLE search_pages (
  org_id  TEXT NOT NULL,
  segment BIGINT NOT NULL,
  page    INTEGER NOT NULL,
  data    BYTEA NOT NULL,
  PRIMARY KEY (org_id, segment, page)
);
ALTER TABLE search_pages ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE search_waiting (
  seq         BIGINT GENERATED ALWAYS AS IDENTITY,
  org_id      TEXT NOT NULL,
  proposal_id TEXT NOT NULL,
  changed     INTEGER NOT NULL,
  PRIMARY KEY (org_id, seq)
);
-- @all
INSERT INTO search_waiting (org_id, proposal_id, changed) SELECT org_id, id, 0 FROM proposals ORDER BY id;
