package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Facts describe a database and its settings, for an operator.
type Facts struct {
	Engine         string
	Schema, Newest int      // number of its last migration; 0: it is empty; and of this program's
	Orgs           []string // ids of all orgs
	Receivers      []string // scheme and host of URLs to which events are sent; not all of many

	Lite *LiteFacts     // nil on PostgreSQL
	PG   *PostgresFacts // nil on SQLite
}

// LiteFacts are about SQLite's file.
type LiteFacts struct {
	Bytes, Free int64 // of the file, and those that no row uses
	WAL         int64 // of the write-ahead log
	Journal     string
	Shrinks     bool // see Compact
}

// PostgresFacts are settings of a PostgreSQL server.
type PostgresFacts struct {
	Version        int           // such as 150004
	Ahead          time.Duration // how much its clock is ahead of this machine's
	Encoding       string
	Fsync          string
	FullPages      string
	Commit         string // synchronous_commit
	MaxConnections int    // for ordinary roles
	Connections    int    // in use, by anyone
	CanCreate      bool
	Recovering     bool // it is a read-only replica
	Encrypted      bool
	Remote         bool
}

// Exists reports whether a folder has a SQLite store.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, fileName))
	return err == nil
}

// maxReceivers limits the receivers among the facts.
const maxReceivers = 50

// ReadFacts reads the facts of a store of any schema, also of an empty database.
func ReadFacts(ctx context.Context, o Options) (out Facts, err error) {
	var s *Snapshot
	if o.URL != "" {
		s, err = openPostgresSnapshot(ctx, o)
	} else {
		s, err = openSQLiteSnapshot(ctx, o.Dir)
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	files, err := schemaFiles()
	if err != nil {
		return out, err
	}
	out.Newest = len(files)
	if out.Engine = s.Engine; o.URL != "" {
		out.PG, err = postgresFacts(ctx, s.reader)
	} else {
		out.Lite, err = liteFacts(ctx, s.reader, o.Dir)
	}
	if err != nil {
		return out, err
	}
	tables, err := strs(ctx, s.reader, s.form.tables)
	if err == nil && slices.Contains(tables, "schema_migrations") {
		_, err = one(ctx, s.reader, []any{&out.Schema}, `SELECT max(number) FROM schema_migrations`)
	}
	if err == nil && slices.Contains(tables, "orgs") {
		out.Orgs, err = strs(ctx, s.reader, `SELECT id FROM orgs ORDER BY id`)
	}
	if err == nil && slices.Contains(tables, "webhooks") {
		out.Receivers, err = strs(ctx, s.reader, `SELECT receiver FROM webhooks WHERE state = 'active'
			UNION SELECT receiver FROM push_configs WHERE state <> 'dead' ORDER BY 1`+limit(maxReceivers))
	}
	return out, err
}

func liteFacts(ctx context.Context, r reader, dir string) (*LiteFacts, error) {
	l := &LiteFacts{WAL: int64(fileSize(filepath.Join(dir, fileName+"-wal"))())}
	var mode, pages, free int64
	for sql, dest := range map[string]any{
		"PRAGMA journal_mode": &l.Journal, "PRAGMA auto_vacuum": &mode, "PRAGMA page_count": &pages,
		"PRAGMA freelist_count": &free,
	} {
		if _, err := one(ctx, r, []any{dest}, sql); err != nil {
			return nil, err
		}
	}
	l.Bytes, l.Free, l.Shrinks = pages*litePage, free*litePage, mode == vacuumIncremental
	return l, nil
}

func postgresFacts(ctx context.Context, r reader) (*PostgresFacts, error) {
	p := &PostgresFacts{}
	var now int64
	var create, recovering, encrypted, remote string
	began := time.Now()
	_, err := one(ctx, r, []any{
		&p.Version, &now, &p.Encoding, &p.Fsync, &p.FullPages, &p.Commit, &p.MaxConnections, &p.Connections, &create,
		&recovering, &encrypted, &remote,
	}, `SELECT CAST(current_setting('server_version_num') AS INTEGER),
			CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT),
			pg_encoding_to_char(d.encoding)::text, current_setting('fsync'), current_setting('full_page_writes'),
			current_setting('synchronous_commit'), 
			CAST(current_setting('max_connections') AS INTEGER)
				- CAST(current_setting('superuser_reserved_connections') AS INTEGER),
			(SELECT CAST(coalesce(sum(numbackends), 0) AS INTEGER) FROM pg_stat_database),
			coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)::text, pg_is_in_recovery()::text,
			coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)::text,
			(inet_server_addr() IS NOT NULL AND inet_server_addr() <> inet_client_addr())::text
		FROM pg_database d WHERE d.datname = current_database()`)
	middle := began.Add(time.Since(began) / 2)
	p.Ahead = fromMicros(now).Sub(middle)
	p.CanCreate, p.Recovering = create == "true", recovering == "true"
	p.Encrypted, p.Remote = encrypted == "true", remote == "true"
	return p, err
}
