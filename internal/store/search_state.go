package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/textindex"
)

const (
	// fewWaiting is how many waiting proposals a search indexes in memory without a further thought. If
	// there are more, it first lets the indexer catch up.
	fewWaiting = 512
	// maxInMemory limits what a search indexes in memory if the indexer of another node has not caught up.
	maxInMemory = 8192
	// maxCatchUp is how many may wait before a search does not wait for the indexer: the index is being
	// built after an upgrade.
	maxCatchUp     = 65_536
	maxCatchUpTime = time.Second
	maxStates      = 256 // orgs of which the state is kept
)

// searchState is the index of an org as of one moment.
type searchState struct {
	version  uint64 // the data version before it was read
	ids      []int64
	views    []*textindex.View // of the segments, with their headers
	memory   *textindex.View   // of what waits; nil if nothing does
	waiting  waitingRows       // what memory has
	complete bool
}

// fresh returns views for one search. Those of the segments come first.
func (s *searchState) fresh() []*textindex.View {
	out := make([]*textindex.View, 0, len(s.views)+1)
	for _, v := range s.views {
		out = append(out, v.Again())
	}
	if s.memory != nil {
		out = append(out, s.memory.Again())
	}
	return out
}

// stateCache keeps the states of some orgs, and lets searches share the reading of a state.
type stateCache struct {
	mu      sync.Mutex
	orgs    map[string]*searchState
	reading map[string]*stateRead
}

// stateRead is a reading that searches wait for.
type stateRead struct {
	done  chan struct{}
	state *searchState
	err   error
}

// state returns the index as of some moment after the call. gone is a state whose pages are gone.
func (x *searchIndex) state(ctx context.Context, r reader, org string, gone *searchState) (*searchState, error) {
	for {
		version, err := x.eng.dataVersion(ctx, org)
		if err != nil {
			return nil, err
		}
		c := &x.states
		c.mu.Lock()
		kept := c.orgs[org]
		if kept != nil && kept != gone && kept.version == version {
			c.mu.Unlock()
			return kept, nil
		}
		running := c.reading[org]
		if running == nil {
			if c.reading == nil {
				c.reading = map[string]*stateRead{}
			}
			running = &stateRead{done: make(chan struct{})}
			c.reading[org] = running
			c.mu.Unlock()
			return x.lead(ctx, r, org, version, running, kept)
		}
		c.mu.Unlock()
		// A reading that runs may miss what was written before this call. Look again when it is done.
		select {
		case <-running.done:
			if running.err == nil && running.state.version == version && running.state != gone {
				return running.state, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lead reads the state for all searches that wait.
func (x *searchIndex) lead(
	ctx context.Context, r reader, org string, version uint64, running *stateRead, kept *searchState,
) (*searchState, error) {
	running.err = errors.New("the reading ended early") // unless it returns
	defer func() {
		c := &x.states
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.reading, org)
		if running.err == nil {
			if _, known := c.orgs[org]; !known && len(c.orgs) >= maxStates {
				for other := range c.orgs { // any
					delete(c.orgs, other)
					break
				}
			}
			c.orgs[org] = running.state
		}
		close(running.done)
	}()
	running.state, running.err = x.readState(ctx, r, org, version, kept)
	return running.state, running.err
}

// readState reads the state. It takes the headers that an earlier state has.
func (x *searchIndex) readState(
	ctx context.Context, r reader, org string, version uint64, kept *searchState,
) (*searchState, error) {
	snap, err := x.snapshot(ctx, r, org, fewWaiting)
	if err != nil {
		return nil, err
	}
	if snap.more {
		behind, err := x.behind(ctx, r, org)
		if err != nil {
			return nil, err
		}
		if !behind {
			x.catchUpSoon(ctx, org)
		}
		most := maxInMemory
		if behind {
			most = fewWaiting
		}
		if snap, err = x.snapshot(ctx, r, org, most); err != nil {
			return nil, err
		}
	}
	s := &searchState{version: version, complete: !snap.more}
	if err := x.openSegments(ctx, r, org, s, snap.segments, kept); err != nil {
		return nil, err
	}
	return s, x.addWaiting(ctx, r, org, s, snap, kept)
}

// catchUpSoon lets the indexer catch up, unless that takes long or fails: a search can do without.
func (x *searchIndex) catchUpSoon(ctx context.Context, org string) {
	limited, cancel := context.WithTimeout(ctx, maxCatchUpTime)
	defer cancel()
	if err := x.catchUp(limited, org, fewWaiting); err != nil && limited.Err() == nil {
		x.report(ctx, "index the proposals of org "+org, err)
	}
}

// behind reports whether so much waits that a search does not wait for it.
func (x *searchIndex) behind(ctx context.Context, r reader, org string) (bool, error) {
	n := 0
	_, err := one(ctx, r, []any{&n}, fewWaitingSQL, org, maxCatchUp+1)
	return n > maxCatchUp, err
}

// fewWaitingSQL counts the proposals of an org that wait; it stops after so many rows.
const fewWaitingSQL = `SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM (
	SELECT n FROM search_waiting WHERE org_id = $1 LIMIT $2) w`

// indexSnapshot is what the tables of an index have at one moment.
type indexSnapshot struct {
	segments []segmentRow // in use
	ids      []string     // that wait
	changed  []string     // those of them that a segment may have
	more     bool         // further ones wait
	waiting  waitingRows
}

// waitingRows identifies rows of search_waiting, whose numbers are never used again. A row can lose
// proposals.
type waitingRows struct {
	n           int // proposals in them
	first, last int64
}

// snapshot reads the segments and up to most of the waiting proposals, the newest, with one statement: a
// proposal goes from one table to the other in one transaction.
func (x *searchIndex) snapshot(ctx context.Context, r reader, org string, most int) (*indexSnapshot, error) {
	out, seen := &indexSnapshot{}, map[string]bool{}
	err := each(ctx, r, func(r rows) error {
		var id, changed int64
		var docs int
		var text string
		if err := r.Scan(&id, &docs, &changed, &text); err != nil {
			return err
		}
		if docs > 0 {
			out.segments = append(out.segments, segmentRow{id: id, docs: docs, dead: text})
			return nil
		}
		ids, w := unpackIDs(text), &out.waiting
		if out.more = out.more || w.n+len(ids) > most; out.more {
			return nil
		}
		w.n, w.first = w.n+len(ids), id // the newest comes first
		w.last = max(w.last, id)
		if changed != 0 {
			out.changed = append(out.changed, ids...)
		}
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				out.ids = append(out.ids, id)
			}
		}
		return nil
	}, `SELECT segment, docs, CAST(0 AS BIGINT), dead FROM search_segments WHERE org_id = $1 AND state = $2
		UNION ALL SELECT * FROM (
			SELECT seq, 0, CAST(changed AS BIGINT), proposals FROM (
				SELECT seq, changed, proposals, sum(n) OVER (ORDER BY seq DESC) - n AS newer FROM (
					SELECT seq, changed, proposals, n FROM search_waiting WHERE org_id = $1 ORDER BY seq DESC LIMIT $3
				) few
			) counted WHERE newer <= $4 ORDER BY seq DESC
		) waiting`, org, segmentUsed, most+1, most)
	return out, err
}

// openSegments reads the headers of segments.
func (x *searchIndex) openSegments(
	ctx context.Context, r reader, org string, s *searchState, rows []segmentRow, kept *searchState,
) error {
	headers := map[int64]*textindex.Segment{}
	if kept != nil {
		for i, id := range kept.ids {
			headers[id] = kept.views[i].Segment
		}
	}
	var want, zero []int64
	for i := range rows {
		if headers[rows[i].id] == nil {
			want, zero = append(want, rows[i].id), append(zero, 0)
		}
	}
	if err := x.readPages(ctx, r, org, want, zero, func(segment int64, _ int, data []byte) (err error) {
		headers[segment], err = textindex.Open(data)
		return err
	}); err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		h := headers[row.id]
		if h == nil {
			return errPageGone
		}
		dead, err := row.deadSet()
		if err != nil {
			return err
		}
		if h.Docs() != row.docs {
			return textindex.ErrDamaged
		}
		s.ids = append(s.ids, row.id)
		s.views = append(s.views, textindex.NewView(h, dead, keptPages{x.pages, row.id}))
	}
	return nil
}

// addWaiting indexes what waits in memory, and hides older versions.
func (x *searchIndex) addWaiting(
	ctx context.Context, r reader, org string, s *searchState, snap *indexSnapshot, kept *searchState,
) error {
	s.waiting = snap.waiting
	if len(snap.changed) > 0 {
		if err := x.mask(ctx, r, org, s.views, s.ids, snap.changed); err != nil {
			return err
		}
		for i, v := range s.views { // without the pages
			s.views[i] = v.Again()
		}
	}
	if len(snap.ids) == 0 {
		return nil
	}
	if kept != nil && kept.waiting == s.waiting && kept.memory != nil {
		s.memory, s.complete = kept.memory, s.complete && kept.complete
		return nil
	}
	docs, n, err := x.readDocs(ctx, r, org, snap.ids, buildText)
	if err != nil || len(docs) == 0 {
		return err
	}
	s.complete = s.complete && n == len(snap.ids)
	s.memory, err = textindex.InMemory(textindex.Build(docs))
	return err
}

// mask hides documents in all views.
func (x *searchIndex) mask(
	ctx context.Context, r reader, org string, views []*textindex.View, segments []int64, ids []string,
) error {
	for waits := true; waits; {
		waits = false
		for _, v := range views {
			_, done, err := v.Mask(ids)
			if err != nil {
				return err
			}
			waits = waits || !done
		}
		if waits {
			if err := x.load(ctx, r, org, views, segments); err != nil {
				return err
			}
		}
	}
	return nil
}
