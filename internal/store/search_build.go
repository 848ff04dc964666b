package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/textindex"
)

const (
	// buildPause is how often the index follows the writes. Proposals of an org are indexed if none came
	// since the last time, or if manyUnindexed wait: a short burst of writes has the processor for itself.
	buildPause    = 500 * time.Millisecond
	manyUnindexed = maxInMemory
	// buildBatch and buildText limit the proposals of one new segment, and their text in bytes.
	buildBatch = 4096
	buildText  = 8 << 20
	// searchLease is how long a process owns the index of an org after its last step.
	searchLease = 30 * time.Second
	// allOrgs is how often all orgs are looked at: other processes write, too, and may have stopped.
	// On PostgreSQL, where other nodes may write all the time, it is otherNodes.
	allOrgs    = 30 * time.Second
	otherNodes = 2 * time.Second
	// maxTrickle is how long proposals wait that come one after the other.
	maxTrickle = 5 * time.Second
	// writeBytes limits one write of pages, so that other writes do not wait long.
	writeBytes = 256 << 10
)

// errNotOwner is the error of a process that does not own the index of an org, or not any more.
var errNotOwner = errors.New("another process indexes the org")

// follow indexes what waits until ctx ends.
func (x *searchIndex) follow(ctx context.Context) {
	tick := time.NewTicker(buildPause)
	defer tick.Stop()
	looked, asked := time.Time{}, time.Time{}
	before := map[string]trickle{}
	for more := false; ; {
		if now := time.Now(); now.Sub(looked) >= allOrgs {
			looked, asked = now, now
			x.report(ctx, "count the proposals to index", x.count(ctx))
			x.report(ctx, "look for orgs to index", x.lookAround(ctx))
		} else if now.Sub(asked) >= otherNodes && x.d == &postgresDialect {
			asked = now
			x.report(ctx, "look for orgs to index", x.lookAround(ctx))
		}
		if more, before = x.round(ctx, before); more && ctx.Err() == nil {
			continue // without a pause
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if x.fence.err() != nil {
			return // the server of a newer version indexes from now on
		}
	}
}

func (x *searchIndex) report(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		x.log.Warn("text index: could not "+what+"; it is tried again", "error", err)
	}
}

// count counts what waits.
func (x *searchIndex) count(ctx context.Context) error {
	var n int64
	if _, err := one(ctx, x.eng, []any{&n}, `SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM search_waiting`); err != nil {
		return err
	}
	if x.waiting.Store(n); n > maxInMemory {
		x.log.Info("text index: searches may not find all proposals until these are indexed", "waiting", n)
	}
	return nil
}

// lookAround finds the orgs that have something to do.
func (x *searchIndex) lookAround(ctx context.Context) error {
	orgs, err := strs(ctx, x.eng, `SELECT id FROM orgs o WHERE EXISTS (
			SELECT 1 FROM search_waiting w WHERE w.org_id = o.id) OR EXISTS (
			SELECT 1 FROM search_segments s WHERE s.org_id = o.id AND s.state <> $1) ORDER BY id`, segmentUsed)
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, org := range orgs {
		x.dirty[org] = true
	}
	return err
}

// trickle is how many proposals of an org waited in a round, and since when some do.
type trickle struct {
	n     int
	since time.Time
}

// round does one step for each org that has something to do, and reports whether there is more. It gets
// and returns the orgs whose proposals are left until no more come.
func (x *searchIndex) round(ctx context.Context, before map[string]trickle) (more bool, now map[string]trickle) {
	x.mu.Lock()
	orgs := x.dirty
	x.dirty = map[string]bool{}
	x.mu.Unlock()
	now = map[string]trickle{}
	var again []string
	for org := range orgs {
		if ctx.Err() != nil {
			return false, now
		}
		n, err := x.countWaiting(ctx, org)
		was, known := before[org]
		if !known {
			was.since = time.Now()
		}
		built := 0
		switch {
		case err != nil:
		case n < manyUnindexed && (!known || n != was.n) && time.Since(was.since) < maxTrickle:
			now[org] = trickle{n, was.since} // perhaps more come at once
			again = append(again, org)
		default:
			if built, err = x.step(ctx, org); built > 0 {
				more = true
				again = append(again, org)
			}
		}
		x.report(ctx, "index the proposals of org "+org, err) // with the next look at all orgs
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, org := range again {
		x.dirty[org] = true
	}
	return more, now
}

// countWaiting counts the proposals of an org that wait, up to manyUnindexed.
func (x *searchIndex) countWaiting(ctx context.Context, org string) (n int, err error) {
	_, err = one(ctx, x.eng, []any{&n}, fewWaitingSQL, org, manyUnindexed)
	return min(n, manyUnindexed), err
}

// turn waits until no other goroutine of this process changes the index of an org.
func (x *searchIndex) turn(ctx context.Context, org string) (done func(), err error) {
	x.mu.Lock()
	if x.busy[org] == nil {
		x.busy[org] = make(chan struct{}, 1)
	}
	busy := x.busy[org]
	x.mu.Unlock()
	select {
	case busy <- struct{}{}:
		return func() { <-busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// catchUp indexes the proposals of an org until at most few wait. If another process owns the index, it
// does nothing.
func (x *searchIndex) catchUp(ctx context.Context, org string, few int) error {
	for {
		if few > 0 {
			if n, err := x.countWaiting(ctx, org); err != nil || n <= few {
				return err
			}
		}
		if n, err := x.step(ctx, org); err != nil || n == 0 {
			return err
		}
	}
}

// step indexes one batch of an org's proposals, and merges and sweeps segments. It returns how many
// it has indexed: none if another process owns the index.
func (x *searchIndex) step(ctx context.Context, org string) (n int, err error) {
	defer func() {
		if p := recover(); p != nil { // the other orgs go on
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	done, err := x.turn(ctx, org)
	if err != nil {
		return 0, err
	}
	defer done()
	if err = x.eng.write(ctx, func(t *tx) error { return x.take(ctx, t, org) }); err == nil {
		n, err = x.build(ctx, org)
	}
	if err == nil && n > 0 {
		err = x.mergeAll(ctx, org)
	}
	if err == nil {
		err = x.sweepSegments(ctx, org)
	}
	if errors.Is(err, errNotOwner) || errs.KindOf(err) == errs.NotFound { // or the org is gone
		return 0, nil
	}
	return n, cmp.Or(err, ctx.Err())
}

// take makes this process the owner of an org's index, or returns errNotOwner. What a former owner has
// not completed is swept: it cannot complete it any more.
func (x *searchIndex) take(ctx context.Context, t *tx, org string) error {
	deleting, err := t.setting(ctx, org, settingDeleting)
	if err != nil {
		return err
	}
	clock, err := x.clock(ctx, t)
	if err != nil {
		return err
	}
	var owner string
	var until int64
	known, err := one(ctx, t, []any{&owner, &until}, `SELECT owner, until FROM search_orgs WHERE org_id = $1`+
		t.d.forUpdate, org)
	end := clock + searchLease.Microseconds()
	switch {
	case err != nil:
		return err
	case deleting != "":
		return errNotOwner
	case !known:
		exists, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`, org)
		if err != nil || !exists {
			return errors.Join(err, errNotOwner)
		}
		t.exec(`INSERT INTO search_orgs (org_id, owner, until) VALUES ($1, $2, $3)`, org, x.token, end)
		return nil
	case owner != x.token && until > clock:
		return errNotOwner
	}
	t.exec(`UPDATE search_orgs SET owner = $2, until = $3 WHERE org_id = $1`, org, x.token, end)
	t.exec(`UPDATE search_segments SET state = $3 WHERE org_id = $1 AND state = $2`, org, segmentWritten, segmentReplaced)
	return nil
}

// asOwner runs a write if this process is still the owner, which then stays so for the length of a lease.
// Another process that takes over waits for the end of the write.
func (x *searchIndex) asOwner(ctx context.Context, org string, fn func(t *tx) error) error {
	return x.eng.writeWide(ctx, func(t *tx) error {
		mine, err := t.exists(ctx, `SELECT 1 FROM search_orgs WHERE org_id = $1 AND owner = $2`+t.d.forUpdate, org, x.token)
		if err == nil && !mine {
			err = errNotOwner
		}
		if err != nil {
			return err
		}
		clock, err := x.clock(ctx, t)
		if err != nil {
			return err
		}
		t.exec(`UPDATE search_orgs SET until = $2 WHERE org_id = $1`, org, clock+searchLease.Microseconds())
		return fn(t)
	})
}

// clock returns the time by which leases are measured.
func (x *searchIndex) clock(ctx context.Context, t *tx) (clock int64, err error) {
	if _, err = one(ctx, t, []any{&clock}, `SELECT `+t.d.clock); clock == 0 {
		clock = micros(x.now())
	}
	return clock, err
}

// waitingRow is a row of search_waiting.
type waitingRow struct {
	seq     int64
	ids     []string
	changed bool
}

// build indexes one batch of waiting proposals, the oldest: of a proposal that was submitted and then
// changed, the row of the submission must not come last. It returns how many no longer wait.
func (x *searchIndex) build(ctx context.Context, org string) (int, error) {
	list, err := x.oldest(ctx, org)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	var ids []string
	seen := map[string]bool{}
	for _, w := range list {
		for _, id := range w.ids {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	docs, n, err := x.readDocs(ctx, x.eng, org, ids, buildText)
	if err != nil {
		return 0, err
	}
	for _, id := range ids[n:] { // for the next batch
		delete(seen, id)
	}
	removed := 0
	var seqs []int64
	var shorter []waitingRow
	var changed []string
	for _, w := range list {
		done, left := parted(w.ids, seen)
		removed += len(done)
		if w.changed {
			changed = append(changed, done...)
		}
		switch {
		case len(left) == 0:
			seqs = append(seqs, w.seq)
		case len(done) > 0:
			shorter = append(shorter, waitingRow{seq: w.seq, ids: left})
		}
	}
	dead, err := x.deadIn(ctx, org, changed)
	if err != nil {
		return 0, err
	}
	var pages [][]byte
	if len(docs) > 0 {
		pages = textindex.Build(docs)
	}
	err = x.commit(ctx, org, pages, len(docs), func(t *tx) {
		for _, d := range dead {
			t.exec(`UPDATE search_segments SET dead = $3, dead_docs = $4 WHERE org_id = $1 AND segment = $2`, org, d.id,
				d.dead, d.deadDocs)
		}
		sql, arg := t.d.numbers(seqs)
		t.exec(`DELETE FROM search_waiting WHERE org_id = $1 AND seq IN (`+sql+`)`, org, arg)
		for _, w := range shorter {
			t.exec(`UPDATE search_waiting SET proposals = $3, n = $4 WHERE org_id = $1 AND seq = $2`,
				org, w.seq, packIDs(w.ids), len(w.ids))
		}
	})
	if err == nil {
		x.waiting.Add(-int64(removed))
	}
	return removed, err
}

// parted returns the ids that are in a set, and the others.
func parted(ids []string, set map[string]bool) (in, out []string) {
	for _, id := range ids {
		if set[id] {
			in = append(in, id)
		} else {
			out = append(out, id)
		}
	}
	return in, out
}

// oldest reads the waiting rows of a batch.
func (x *searchIndex) oldest(ctx context.Context, org string) (list []waitingRow, err error) {
	err = each(ctx, x.eng, func(r rows) error {
		var w waitingRow
		var changed int64
		var ids string
		err := r.Scan(&w.seq, &ids, &changed)
		w.ids, w.changed = unpackIDs(ids), changed != 0
		list = append(list, w)
		return err
	}, `SELECT seq, proposals, changed FROM (
			SELECT seq, proposals, changed, sum(n) OVER (ORDER BY seq) - n AS older FROM (
				SELECT seq, proposals, changed, n FROM search_waiting WHERE org_id = $1 ORDER BY seq LIMIT $2
			) few
		) counted WHERE older < $2 ORDER BY seq`, org, buildBatch)
	return list, err
}

// deadIn returns the segments that have older versions of proposals, with these marked as dead.
func (x *searchIndex) deadIn(ctx context.Context, org string, changed []string) (out []segmentRow, err error) {
	if len(changed) == 0 {
		return nil, nil
	}
	used, s, err := x.openUsed(ctx, org)
	if err != nil {
		return nil, err
	}
	if err := x.mask(ctx, x.eng, org, s.views, s.ids, changed); err != nil {
		return nil, err
	}
	for i := range used {
		dead := s.views[i].Dead()
		if n := dead.Count(); n != used[i].deadDocs {
			used[i].deadDocs = n
			used[i].dead = base64.RawStdEncoding.EncodeToString(textindex.EncodeSet(dead, used[i].docs))
			out = append(out, used[i])
		}
	}
	return out, nil
}

// openUsed reads the headers of the segments in use.
func (x *searchIndex) openUsed(ctx context.Context, org string) ([]segmentRow, *searchState, error) {
	all, err := x.segments(ctx, x.eng, org)
	if err != nil {
		return nil, nil, err
	}
	var used []segmentRow
	for _, row := range all {
		if row.state == segmentUsed {
			used = append(used, row)
		}
	}
	s := &searchState{}
	return used, s, x.openSegments(ctx, x.eng, org, s, used, nil)
}

// commit adds a segment, if it has pages, and runs more in the transaction in which it comes into use.
// Pages are written in several transactions before that. If this process loses the index meanwhile,
// the new owner removes them.
func (x *searchIndex) commit(ctx context.Context, org string, pages [][]byte, docs int, more func(t *tx)) error {
	segment := rand.Int64N(1 << 62)
	total := int64(0)
	for _, p := range pages {
		total += int64(len(p))
	}
	next := 0
	for first := true; len(pages)-next > 0; first = false {
		end, size := next, 0
		for end < len(pages) && (end == next || size+len(pages[end]) <= writeBytes) {
			size += len(pages[end])
			end++
		}
		if end == len(pages) { // with the last transaction
			break
		}
		if err := x.asOwner(ctx, org, func(t *tx) error {
			if first {
				t.addSegment(org, segment, segmentWritten, docs, total, x.now())
			}
			t.addPages(org, segment, next, pages[next:end])
			return nil
		}); err != nil {
			return err
		}
		next = end
	}
	return x.asOwner(ctx, org, func(t *tx) error {
		switch {
		case next > 0:
			t.exec(`UPDATE search_segments SET state = $3 WHERE org_id = $1 AND segment = $2`, org, segment, segmentUsed)
		case len(pages) > 0:
			t.addSegment(org, segment, segmentUsed, docs, total, x.now())
		}
		t.addPages(org, segment, next, pages[next:])
		more(t)
		t.touch(org)
		return nil
	})
}

func (t *tx) addSegment(org string, segment int64, state, docs int, bytes int64, now time.Time) {
	t.exec(`INSERT INTO search_segments (org_id, segment, state, docs, dead_docs, bytes, changed_at, dead)
		VALUES ($1, $2, $3, $4, 0, $5, $6, '')`, org, segment, state, docs, bytes, micros(now))
}

// addPages adds pages, the first of which has a number.
func (t *tx) addPages(org string, segment int64, first int, pages [][]byte) {
	for i, data := range pages {
		t.exec(`INSERT INTO search_pages (org_id, segment, page, data) VALUES ($1, $2, $3, $4)`, org, segment, first+i, data)
	}
}
