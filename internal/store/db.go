package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/proposal"
)

// db is shared by the store types of all domains.
type db struct {
	eng    engine
	d      *dialect
	lane   *lane // for slow reads
	search *searchIndex
	now    func() time.Time
	hooks  *hooks
	// claimer names this server in the claims of deliveries; empty for a command. See claims.go.
	claimer string
	// sessionOf is Options.SessionOf.
	sessionOf func(data []byte, org, user string) bool
	settle    time.Duration                           // Options.Settle
	used      func(ctx context.Context) (bool, error) // reports whether a server may use the store
}

// engine is implemented by SQLite and PostgreSQL.
type engine interface {
	reader
	// write runs fn in a transaction, which it may share with other writes, and returns
	// after the commit. fn may run more than once.
	write(ctx context.Context, fn func(*tx) error) error
	// writeWide is write for megabytes of data. It delays other writes as little as possible.
	writeWide(ctx context.Context, fn func(*tx) error) error
	// add is write for a function that reads nothing, so that the engine can combine many
	// of them.
	add(ctx context.Context, fn func(*tx) error) error
	// change is write for a decision about a proposal, so that the engine can combine many of them.
	change(ctx context.Context, c *change) error
	// number returns after all events of the org that were committed before have numbers.
	number(ctx context.Context, org string) error
	// scanPack reads last_seq, n and data of a row of events. For pages of the log, which many readers
	// request, this is cheaper than packText of the dialect.
	scanPack(r rows, p *storedPack) error
	// dataVersion changes after every commit that touched the org's proposals.
	dataVersion(ctx context.Context, org string) (uint64, error)
	// seenVersion is SeenVersion of proposal.Store.
	seenVersion(org string) proposal.SeenVersion
	// slow returns a reader on connections that are reserved for slow reads; see lane.go.
	slow() reader
	// stale is slow for reads that may see data which is some seconds old.
	stale() reader
	slowConns() int
	// migrate runs fn in a transaction that excludes other migrations.
	migrate(ctx context.Context, fn func(migrator) error) error
	ping(ctx context.Context) error
	close() error
}
