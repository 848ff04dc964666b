package store

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/proposal"
)

const (
	// indexBatch is how many proposals are added to the text index in one write. One large
	// batch costs a fraction of many small ones, because each write leaves a segment of the
	// index that must be merged later.
	indexBatch = 2048
	// indexPause is how soon after a write the index is updated if no search needs it. While
	// more than a batch arrives within a pause, the update waits: a burst of writes needs the
	// processor more.
	indexPause = 250 * time.Millisecond
	// indexLag is how many proposals may wait before the index is updated in any case. A
	// search during a burst never waits for more than these, a second or two of work.
	indexLag = 32 * indexBatch
)

// indexer maintains SQLite's full-text index. Submitted proposals are indexed in batches a
// moment later. A search first indexes those that wait, so the delay is not visible. The
// progress needs no separate record: proposals are indexed in the order of their row numbers,
// and after a crash the indexer continues behind the last one in the index.
type indexer struct {
	write   func(context.Context, func(*tx) error) error
	log     *slog.Logger
	added   atomic.Int64  // proposals added by this process
	indexed atomic.Int64  // how many of these are certainly in the index
	wake    chan struct{} // signals that too many wait

	one  chan struct{} // held by the goroutine that catches up
	stop context.CancelFunc
	done sync.WaitGroup
}

func newIndexer(write func(context.Context, func(*tx) error) error, log *slog.Logger) *indexer {
	x := &indexer{write: write, log: log, wake: make(chan struct{}, 1), one: make(chan struct{}, 1)}
	x.added.Store(1) // an earlier process may have left some
	return x
}

// start begins to follow the writes. The store must hold the indexer before that, because the
// indexer writes too and every write calls the store's indexer.
func (x *indexer) start() {
	ctx, stop := context.WithCancel(context.Background())
	x.stop = stop
	x.done.Go(func() { x.follow(ctx) })
}

// add counts n new proposals, after their commit and before their writes return. It returns
// how many were added so far.
func (x *indexer) add(n int64) int64 {
	if n == 0 {
		return x.added.Load()
	}
	added := x.added.Add(n)
	if added-x.indexed.Load() >= indexLag {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
	return added
}

func (x *indexer) follow(ctx context.Context) {
	pause := time.NewTicker(indexPause)
	defer pause.Stop()
	before := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
		case <-pause.C:
			added := x.added.Load()
			busy := added-before > indexBatch
			if before = added; busy {
				continue
			}
		}
		err := x.catchUp(ctx, x.added.Load())
		if err != nil && errs.As(err).Code == CodeMigrated {
			return // the server of a newer version indexes from now on
		}
		if err != nil && ctx.Err() == nil {
			x.log.Warn("text index not updated; the next search updates it", "error", err)
		}
	}
}

// catchUp indexes until the first upTo proposals are in the index.
func (x *indexer) catchUp(ctx context.Context, upTo int64) error {
	for x.indexed.Load() < upTo {
		if err := x.step(ctx, upTo); err != nil {
			return err
		}
	}
	return nil
}

// step indexes one batch, unless another goroutine has indexed upTo proposals meanwhile.
func (x *indexer) step(ctx context.Context, upTo int64) error {
	select {
	case x.one <- struct{}{}:
		defer func() { <-x.one }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if x.indexed.Load() >= upTo {
		return nil
	}
	added, n := x.added.Load(), 0
	err := x.write(ctx, func(t *tx) error {
		n = 0
		return each(ctx, t, func(r rows) error {
			var seq int64
			var p proposal.Proposal
			if err := r.Scan(&seq, &p.Title, &p.Problem, &p.SuggestedFix); err != nil {
				return err
			}
			n++
			t.exec(`INSERT INTO proposal_search (rowid, words) VALUES ($1, $2)`,
				seq, strings.Join(p.SearchWords(), " "))
			return nil
		}, `SELECT seq, title, problem, suggested_fix FROM proposals
			WHERE seq > (SELECT coalesce(max(id), 0) FROM proposal_search_docsize) ORDER BY seq LIMIT $1`, indexBatch)
	})
	switch {
	case err != nil:
	case n < indexBatch: // all are indexed
		x.indexed.Store(added)
	case x.indexed.Load() > 0: // those of earlier processes are indexed, so this process added these
		x.indexed.Add(int64(n))
	}
	return err
}

func (x *indexer) close() {
	x.stop()
	x.done.Wait()
}
