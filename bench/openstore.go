package main

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
)

// openedStore is a store in this process, for what is measured without a server.
type openedStore struct {
	*store.Store
	data []string // the flags of a server on it
}

// openStore opens a new store.
func openStore(ctx context.Context, engine string) (_ *openedStore, cleanup func(), err error) {
	data, remove, err := newData(ctx, engine)
	if err != nil {
		return nil, nil, err
	}
	o := store.Options{Dir: data[1]}
	if engine == "postgres" {
		o = store.Options{URL: data[1]}
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return &openedStore{Store: s, data: data}, func() { _ = s.Close(); remove() }, nil
}

// fill creates an org with so many proposals. The result of each depends only on its number.
func (s *openedStore) fill(ctx context.Context, name string, rows int, row func(org string, i int64) proposal.Proposal,
) error {
	operator := identity.NewOperator(s.IdentityStores(), app.Now, func(prefix string) string { return prefix + "x" })
	if _, err := operator.CreateOrg(ctx, name, ""); err != nil {
		return err
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(rows) && failed.Load() == nil; i = next.Add(1) {
				if _, err := s.Proposals().Insert(ctx, row(name, i), submitter(name), nil); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// indexed waits until the text index has all proposals.
func (s *openedStore) indexed(ctx context.Context) error {
	for s.SearchWaiting() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// openSQL opens the store that the flags of a server name, beside that server. pragmas are for SQLite.
func openSQL(engine string, data []string, pragmas ...string) (*sql.DB, error) {
	if engine == "postgres" {
		return sql.Open("pgx", data[1])
	}
	q := url.Values{"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return sql.Open("sqlite", "file:"+filepath.Join(data[1], "parley.db")+"?"+q.Encode())
}
