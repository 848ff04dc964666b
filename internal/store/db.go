package store

import (
	"context"
	"time"
)

// db is what the types of all domains share.
type db struct {
	eng  engine
	d    *dialect
	lane *lane // of slow reads
	now  func() time.Time
}

// engine is what SQLite and PostgreSQL do differently.
type engine interface {
	reader
	// write runs fn in a transaction of its own or shared with others, and returns
	// after the commit. fn may run more than once.
	write(ctx context.Context, fn func(*tx) error) error
	// writeWide is write for megabytes: it delays other writes as little as possible.
	writeWide(ctx context.Context, fn func(*tx) error) error
	// add is write for a function that reads nothing, which lets the engine
	// combine many of them.
	add(ctx context.Context, fn func(*tx) error) error
	// dataVersion changes after every commit that touched the org's proposals.
	dataVersion(ctx context.Context, org string) (uint64, error)
	// slow reads on connections that only slow reads use; see lane.go.
	slow() reader
	slowConns() int
	// readySearch returns when a search finds everything that was written in the org
	// so far.
	readySearch(ctx context.Context, org string) error
	// migrate runs fn in a transaction that excludes other migrations.
	migrate(ctx context.Context, fn func(migrator) error) error
	ping(ctx context.Context) error
	close() error
}
