package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/store"
)

// none reports whether there is no SQLite store yet.
func (e *exam) none() bool {
	return e.Store.URL == "" && !store.Exists(e.Store.Dir)
}

func (e *exam) migrations() {
	f := e.facts
	switch {
	case f == nil && e.none():
		e.ok("there is no store yet: the first start makes it")
	case f == nil:
		e.warn("it is not known which are pending", "solve the problem of the database first")
	case f.Schema == 0:
		e.ok("the database is empty: the first start makes the store")
	case f.Schema > f.Newest:
		e.fail(fmt.Sprintf("the store has schema %d, and this parley knows schema %d", f.Schema, f.Newest),
			"use the version that the servers have, or a newer one")
	case f.Schema < f.Newest:
		e.warn(fmt.Sprintf("the store has schema %d, and this parley brings it to schema %d", f.Schema, f.Newest),
			"the next start of the server does that; back up first, and see \"parley migrate --dry-run\"")
	default:
		e.ok(fmt.Sprintf("the store has schema %d, which is up to date", f.Schema))
	}
}

func (e *exam) database() {
	if e.none() {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, within)
	defer cancel()
	f, err := store.ReadFacts(ctx, e.Store)
	if err == nil {
		e.facts = &f
	}
	switch {
	case err != nil && e.Store.URL != "":
		e.fail(err.Error(), "correct --database, and see whether the database runs and can be reached from here")
	case err != nil:
		e.fail(err.Error(), "see whether --data names the right folder")
	case f.Lite != nil:
		e.lite(f.Lite)
	default:
		e.postgres(f.PG)
	}
}

// lite judges SQLite's file.
func (e *exam) lite(f *store.LiteFacts) {
	const largeWAL, largeFree = 256 << 20, 64 << 20
	if f.Journal != "wal" {
		e.fail("the file has the journal mode "+f.Journal+", so that readers and writers block each other",
			"start the server once: it sets the mode wal")
	}
	if f.WAL > largeWAL {
		e.warn(fmt.Sprintf("the write-ahead log has %d MiB: something has read for long", f.WAL>>20),
			"look for programs that keep the file open, and restart the server")
	}
	if f.Free > largeFree && f.Free > f.Bytes/4 {
		do := "run \"parley compact\""
		if !f.Shrinks {
			do = "stop the server once, and run \"parley compact --full\""
		}
		e.warn(fmt.Sprintf("%d of %d MiB of the file are free", f.Free>>20, f.Bytes>>20), do)
	}
	e.ok(fmt.Sprintf("SQLite, %d KiB", f.Bytes>>10))
}

const (
	oldestPostgres = 140_000
	smallSkew      = 2 * time.Second
	largeSkew      = 30 * time.Second
)

// postgres judges the settings of the server.
func (e *exam) postgres(f *store.PostgresFacts) {
	if f.Version < oldestPostgres {
		e.fail(fmt.Sprintf("PostgreSQL %d is too old", f.Version/10_000), "use version 14 or newer")
	}
	if f.Encoding != "UTF8" {
		e.fail("the database has the encoding "+f.Encoding+", which cannot store all texts",
			"create it again with ENCODING 'UTF8', and move the data with parley backup and parley restore")
	}
	if f.Recovering {
		e.fail("the address leads to a read-only replica", "give the address of the primary, or several with "+
			"target_session_attrs=read-write")
	}
	if !f.CanCreate {
		e.fail("the role may not create tables in the schema, which migrations need",
			"GRANT CREATE ON SCHEMA public TO the role, or make it the owner of the database")
	}
	if f.Fsync != "on" || f.FullPages != "on" {
		e.fail("fsync is "+f.Fsync+" and full_page_writes is "+f.FullPages+": a power failure can damage the database",
			"set both to on")
	}
	if f.Commit == "off" {
		e.warn("synchronous_commit is off: a crash can lose writes that were confirmed", "set it to on for this database")
	}
	e.connections(f)
	if f.Remote && !f.Encrypted {
		e.warn("the connection to the database is not encrypted", "add sslmode=verify-full to --database")
	}
	switch skew := f.Ahead.Abs(); {
	case skew > largeSkew:
		e.fail(fmt.Sprintf("the clock of the database differs by %s from this machine's", skew.Round(time.Second)),
			"synchronize both with NTP: leases depend on it")
	case skew > smallSkew:
		e.warn(fmt.Sprintf("the clock of the database differs by %s from this machine's", skew.Round(time.Second)),
			"synchronize both with NTP")
	}
	e.ok(fmt.Sprintf("PostgreSQL %d, %d of %d connections in use", f.Version/10_000, f.Connections, f.MaxConnections))
}

// spare is the number of connections beside those of the pool: for slow reads, hints and the operator.
const spare = 7

func (e *exam) connections(f *store.PostgresFacts) {
	need := e.Config.DatabaseConnections + spare
	switch {
	case f.MaxConnections < need:
		e.fail(fmt.Sprintf("PostgreSQL allows %d connections, and one server uses up to %d", f.MaxConnections, need),
			"raise max_connections, or lower --database-connections")
	case f.MaxConnections < 2*need:
		e.warn(fmt.Sprintf("PostgreSQL allows %d connections; two servers use up to %d", f.MaxConnections, 2*need),
			"raise max_connections before you start a second server, or lower --database-connections")
	}
}
