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
	// indexBatch is how many proposals are added to the text index in one write. A
	// large batch costs a fraction of as many small ones, since each leaves a
	// segment of the index that has to be merged with others later.
	indexBatch = 2048
	// indexPause is how soon after a write the index follows, if nothing asks for
	// it. While more than a batch comes within a pause, it does not: the machine has
	// better things to do.
	indexPause = 250 * time.Millisecond
	// indexLag is how many proposals may wait before the index is brought up to date
	// in any case. A search in the midst of a burst never waits for more than these,
	// which is a second or two of work.
	indexLag = 32 * indexBatch
)

// indexer keeps SQLite's full-text index. Submitting a proposal leaves it to be
// indexed with many others a moment later; a search first indexes what waits, so
// that nobody can tell. What is indexed needs no record of its own: proposals are
// indexed in the order of their row numbers, and the index knows its last one. A
// server that was killed goes on from there.
type indexer struct {
	write   func(context.Context, func(*tx) error) error
	log     *slog.Logger
	added   atomic.Int64  // proposals added by this process
	indexed atomic.Int64  // of these, how many are surely in the index
	wake    chan struct{} // too many wait

	one  chan struct{} // one catches up at a time
	stop context.CancelFunc
	done sync.WaitGroup
}

func newIndexer(write func(context.Context, func(*tx) error) error, log *slog.Logger) *indexer {
	x := &indexer{write: write, log: log, wake: make(chan struct{}, 1), one: make(chan struct{}, 1)}
	x.added.Store(1) // the process before this one may have left some
	return x
}

// start begins to follow the writes. The indexer writes itself, and every write is
// told to the store's indexer, so the store must have it by then.
func (x *indexer) start() {
	ctx, stop := context.WithCancel(context.Background())
	x.stop = stop
	x.done.Go(func() { x.follow(ctx) })
}

// add is told of n new proposals after their commit and before their callers. It
// returns how many were added so far.
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
			return // a newer program's server indexes from now on
		}
		if err != nil && ctx.Err() == nil {
			x.log.Warn("the text index is behind; searches bring it up to date", "error", err)
		}
	}
}

// catchUp returns when the first upTo proposals are in the index.
func (x *indexer) catchUp(ctx context.Context, upTo int64) error {
	for x.indexed.Load() < upTo {
		if err := x.step(ctx, upTo); err != nil {
			return err
		}
	}
	return nil
}

// step indexes one batch, unless another has come that far meanwhile.
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
			t.exec(`INSERT INTO proposal_search (rowid, words) VALUES ($1, $2)`, seq, strings.Join(p.SearchWords(), " "))
			return nil
		}, `SELECT seq, title, problem, suggested_fix FROM proposals
			WHERE seq > (SELECT coalesce(max(id), 0) FROM proposal_search_docsize) ORDER BY seq LIMIT $1`, indexBatch)
	})
	switch {
	case err != nil:
	case n < indexBatch: // none is left of those
		x.indexed.Store(added)
	case x.indexed.Load() > 0: // nothing is left of an earlier process, so these were added by this one
		x.indexed.Add(int64(n))
	}
	return err
}

func (x *indexer) close() {
	x.stop()
	x.done.Wait()
}
