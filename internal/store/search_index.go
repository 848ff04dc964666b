package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/textindex"
)

// searchIndex is the text index of proposals. Each org has its own, in segments of package textindex.
//
// A write of a proposal adds it to a row of search_waiting. In the background, batches of these rows become
// segments (search_build.go), and small segments become large ones (search_merge.go). A search reads the
// segments, and indexes in memory what waits (search_state.go), so it sees all that was committed before.
type searchIndex struct {
	*db
	log    *slog.Logger
	fence  *fence
	token  string // names this process as the owner of an org's index
	states stateCache
	pages  *cache.Cache[pageKey, *textindex.Page] // that searches have read

	// waiting is the number of proposals that wait, as of the last count.
	waiting atomic.Int64

	mu    sync.Mutex
	dirty map[string]bool          // orgs with new rows in search_waiting
	busy  map[string]chan struct{} // of orgs whose index this process changes; see turn

	stop context.CancelFunc
	done sync.WaitGroup
}

func newSearchIndex(d *db, f *fence, log *slog.Logger) *searchIndex {
	own := *d
	return &searchIndex{
		db: &own, fence: f, log: log, token: newToken(), dirty: map[string]bool{}, busy: map[string]chan struct{}{},
		states: stateCache{orgs: map[string]*searchState{}}, pages: newPageCache(),
	}
}

// awaited is a proposal that a write queues for the text index. changed is false for a new one, of
// which no segment has an older version.
type awaited struct {
	org, id string
	changed bool
}

// await queues a proposal for the text index. It must be called in the write that changes the proposal.
func (t *tx) await(org, id string, changed bool) {
	t.awaiting = append(t.awaiting, awaited{org, id, changed})
}

// maxAwaited limits the proposals in one row of search_waiting.
const maxAwaited = 256

// flushAwaiting queues few rows for all proposals of a batch: a row for each would cost as much as an
// index of the proposals.
func (t *tx) flushAwaiting() {
	type group struct {
		org     string
		changed bool
	}
	packs := map[group][]string{}
	var order []group // a new proposal comes before its changes
	for _, a := range t.awaiting {
		g := group{a.org, a.changed}
		if packs[g] == nil {
			order = append(order, g)
		}
		packs[g] = append(packs[g], a.id)
	}
	slices.SortStableFunc(order, func(a, b group) int { return cmp.Compare(flag(a.changed), flag(b.changed)) })
	for _, g := range order {
		for ids := range slices.Chunk(packs[g], maxAwaited) {
			t.insert(`INSERT INTO search_waiting (org_id, proposals, n, changed) VALUES ($1, $2, $3, $4)`,
				g.org, packIDs(ids), len(ids), flag(g.changed))
		}
	}
}

// The ids in a row of search_waiting are separated by spaces, which no id has.
func packIDs(ids []string) string      { return strings.Join(ids, " ") }
func unpackIDs(packed string) []string { return strings.Fields(packed) }

// awaitProposals queues proposals that no segment has.
const awaitProposals = `INSERT INTO search_waiting (org_id, proposals, n, changed) SELECT org_id, id, 1, 0 FROM proposals`

// added is called after a commit with the proposals that it has queued.
func (x *searchIndex) added(list []awaited) {
	if len(list) == 0 {
		return
	}
	x.waiting.Add(int64(len(list)))
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range list {
		x.dirty[list[i].org] = true
	}
}

// The states of a segment.
const (
	segmentWritten = iota
	segmentUsed
	segmentReplaced
)

// errDamagedIndex is the error of a search that cannot read the index.
func errDamagedIndex(org string, err error) error {
	return errs.Wrap(err, errs.Unavailable, "search.damaged",
		"the text index of org %q is damaged; the operator can build it again with \"parley check --repair\"", org)
}

// Tags of documents.
func statusTag(s proposal.Status) string     { return "status:" + string(s) }
func categoryTag(c proposal.Category) string { return "category:" + string(c) }
func priorityTag(rank int) string            { return "priority:" + strconv.Itoa(rank) }
func kindTag(person bool) string             { return "person:" + strconv.FormatBool(person) }
func evidenceTag(has bool) string            { return "evidence:" + strconv.FormatBool(has) }

// submitterTag has a hash, because segments keep tags after the submitter was erased, until they are merged.
func submitterTag(ref string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(ref)) // cannot fail
	return "by:" + strconv.FormatUint(h.Sum64(), 36)
}

// docOf returns what the index holds of a proposal.
func docOf(p *proposal.Proposal) textindex.Doc {
	d := textindex.Doc{ID: p.ID, Tags: []string{
		statusTag(p.Status), categoryTag(p.Category), priorityTag(p.Priority.Rank()), kindTag(byPerson(p)),
		evidenceTag(p.Fingerprint != ""), submitterTag(p.SubmittedBy),
	}}
	d.Title, d.Text = p.Terms()
	return d
}

// docColumns are what docOf needs.
const docColumns = `p.id, p.status, p.category, p.priority, p.submitted_by, p.title, p.problem, p.suggested_fix,
	p.fingerprint`

// readDocs indexes the proposals with these ids that exist. It stops before their text exceeds maxText
// bytes, and returns how many ids it has looked up.
func (x *searchIndex) readDocs(
	ctx context.Context, r reader, org string, ids []string, maxText int,
) (docs []textindex.Doc, n int, err error) {
	const page = 32
	for size := 0; n < len(ids) && size < maxText; {
		part := ids[n:min(n+page, len(ids))]
		sql, arg := x.d.listed(part)
		if err := each(ctx, r, func(r rows) error {
			var p proposal.Proposal
			var status, category string
			var rank int
			if err := r.Scan(&p.ID, &status, &category, &rank, &p.SubmittedBy, &p.Title, &p.Problem, &p.SuggestedFix,
				&p.Fingerprint); err != nil {
				return err
			}
			p.Status, p.Category, p.Priority = proposal.Status(status), proposal.Category(category), proposal.Priorities[rank]
			size += len(p.Title) + len(p.Problem) + len(p.SuggestedFix)
			docs = append(docs, docOf(&p))
			return ctx.Err()
		}, `SELECT `+docColumns+` FROM (`+sql+`) k `+x.d.byID, org, arg); err != nil {
			return nil, 0, err
		}
		n += len(part)
	}
	return docs, n, nil
}

// segmentRow is a row of search_segments.
type segmentRow struct {
	id       int64
	state    int
	docs     int
	deadDocs int
	bytes    int64
	changed  int64
	dead     string
}

func (s *segmentRow) deadSet() (textindex.Set, error) {
	data, err := base64.RawStdEncoding.DecodeString(s.dead)
	if err != nil {
		return nil, fmt.Errorf("%w: deleted documents", textindex.ErrDamaged)
	}
	if s.docs < 1 || s.docs > textindex.MaxDocs {
		return nil, fmt.Errorf("%w: a number of documents", textindex.ErrDamaged)
	}
	return textindex.DecodeSet(data, s.docs)
}

// segments reads the segments of an org in all states.
func (x *searchIndex) segments(ctx context.Context, r reader, org string) (list []segmentRow, err error) {
	err = each(ctx, r, func(r rows) error {
		var s segmentRow
		err := r.Scan(&s.id, &s.state, &s.docs, &s.deadDocs, &s.bytes, &s.changed, &s.dead)
		list = append(list, s)
		return err
	}, `SELECT segment, state, docs, dead_docs, bytes, changed_at, dead FROM search_segments WHERE org_id = $1
		ORDER BY segment`, org)
	return list, err
}

// SearchWaiting returns how many proposals wait to be indexed, as of a moment ago.
func (s *Store) SearchWaiting() int64 { return max(0, s.search.waiting.Load()) }

// start begins to index in the background.
func (x *searchIndex) start() {
	ctx, stop := context.WithCancel(context.Background())
	x.stop = stop
	x.done.Go(func() { x.follow(ctx) })
}

func (x *searchIndex) close() {
	if x.stop == nil {
		return
	}
	x.stop()
	x.done.Wait()
	x.stop = nil
	x.release()
}

// release lets other processes continue at once.
func (x *searchIndex) release() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = x.eng.write(ctx, func(t *tx) error { // else the others wait until the lease ends
		mine, err := t.exists(ctx, `SELECT 1 FROM search_orgs WHERE owner = $1 LIMIT 1`, x.token)
		if err == nil && mine {
			t.exec(`UPDATE search_orgs SET until = 0 WHERE owner = $1`, x.token)
		}
		return err
	})
}
