package doctor

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/store"
)

// none reports whether there is no SQLite store yet.
func (e *exam) none() bool {
	return e.Store.URL == "" && !store.Exists(e.Store.Dir)
}

func (e *exam) migrations() {
	if e.none() {
		e.ok("there is no store yet: the first start makes it")
		return
	}
	r, err := store.Plan(e.ctx, e.Store)
	switch {
	case err != nil:
		e.fail(err.Error(), "see \"parley migrate --dry-run\"")
	case len(r.Pending) == 0:
		e.ok(fmt.Sprintf("the store has schema %d, which is up to date", r.Schema))
	default:
		text := fmt.Sprintf("the store has schema %d; %d migrations are pending", r.Schema, len(r.Pending))
		if n := len(r.Nodes); n > 0 {
			text += fmt.Sprintf(", and %d older servers use it", n)
		}
		e.warn(text, "the next start of the server migrates; back up first, and see \"parley migrate --dry-run\"")
	}
}

func (e *exam) database() {
	if e.none() {
		return
	}
	f, err := store.ReadFacts(e.ctx, e.Store)
	e.orgs, e.hosts = f.Orgs, f.Receivers
	switch {
	case err != nil:
		e.fail(err.Error(), "correct --data or --database, and see whether the database runs and can be reached")
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

// spare is the number of connections beside those of the pool: for hints, claims and the operator.
const spare = 5

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
