package store

import (
	"context"
	"errors"

	"github.com/parley-dev/parley/internal/event"
)

// head is a row of event_heads.
type head struct{ seq, kept, indexed int64 }

// head reads where the log of an org ends. On PostgreSQL it first numbers the packs that were
// committed before: what was acknowledged before a read is in the log that it reads.
func (s Events) head(ctx context.Context, org string) (head, error) {
	for numbered := false; ; numbered = true {
		h := head{kept: 1} // of an org without a row: it has no events, or they have no numbers yet
		waiting := 0
		found, err := one(ctx, s.eng, []any{&h.seq, &h.kept, &h.indexed, &waiting},
			`SELECT seq, kept, indexed, `+s.d.unnumbered+` FROM event_heads h WHERE org_id = $1`, org)
		// What still waits after the packs were numbered was committed after the call.
		if err != nil || numbered || found && waiting == 0 {
			return h, err
		}
		if err := s.eng.number(ctx, org); err != nil {
			return h, err
		}
	}
}

// Head implements event.Store.
func (s Events) Head(ctx context.Context, org string) (int64, error) {
	h, err := s.head(ctx, org)
	return h.seq, err
}

const (
	scanWindow = 20_000  // numbers that one page covers at most, except by the index of subjects
	scanBytes  = 4 << 20 // bytes of packs that one page reads, roughly
	pagePacks  = 256     // packs that one query returns
)

// Page implements event.Store. It reads a limited part of the log, so that a filter that selects
// little costs no more than one that selects all; Last says how far it came.
func (s Events) Page(ctx context.Context, org string, q event.Query) (event.Page, error) {
	for {
		h, err := s.head(ctx, org)
		if err != nil {
			return event.Page{}, err
		}
		scan := newScan(s, org, &q, h)
		start := scan.page.Last
		if err := scan.read(ctx, h); err != nil || !scan.gap {
			return scan.page, err
		}
		// The first packs were not what follows start: the filter excludes them, or they were just
		// deleted. Then the reader must know.
		kept := h.kept
		if _, err := one(ctx, s.eng, []any{&kept}, `SELECT kept FROM event_heads WHERE org_id = $1`, org); err != nil {
			return event.Page{}, err
		}
		if kept <= start+1 {
			return scan.page, nil
		}
	}
}

// scan reads packs into a page.
type scan struct {
	Events
	org   string
	q     *event.Query
	page  event.Page
	bytes int
	gap   bool // the packs of a query did not begin where the page ended
}

// newScan returns a scan that starts after the number in the query, or with the oldest event that
// is kept.
func newScan(s Events, org string, q *event.Query, h head) *scan {
	p := event.Page{Last: max(q.After, h.kept-1), Head: h.seq, Kept: h.kept}
	if p.Missed = q.After > 0 && q.After < h.kept-1 || q.After > h.seq; p.Missed {
		p.Last = h.kept - 1
	}
	return &scan{Events: s, org: org, q: q, page: p}
}

// full reports whether the page has enough.
func (s *scan) full() bool { return len(s.page.Events) >= s.q.Limit || s.bytes >= scanBytes }

func (s *scan) read(ctx context.Context, h head) error {
	for s.q.Subject != "" && s.page.Last < h.indexed && !s.full() {
		if err := s.indexed(ctx, h.indexed); err != nil {
			return err
		}
	}
	end := min(s.page.Last+scanWindow, h.seq)
	// Without a filter, the first window has what the page needs, and no more.
	for window := int64(s.q.Limit); !s.full() && s.page.Last < end; window = min(4*window+maxPacked, scanWindow) {
		if err := s.window(ctx, min(s.page.Last+window, end), h.seq); err != nil {
			return err
		}
	}
	return nil
}

// window reads the packs with events after page.Last, up to a number. That number can be in the
// middle of a pack, which then ends less than maxPacked numbers later.
func (s *scan) window(ctx context.Context, to, head int64) error {
	return s.add(ctx, to, `SELECT last_seq, n, data FROM events
		WHERE org_id = $1 AND last_seq > $2 AND last_seq <= $3
			AND (CAST($4 AS BIGINT) = 0 OR types & CAST($4 AS BIGINT) <> 0)
		ORDER BY last_seq`, s.org, s.page.Last, min(to+maxPacked-1, head), int64(s.q.Types))
}

// indexed reads the packs with the subject, up to the number where the index ends.
func (s *scan) indexed(ctx context.Context, to int64) error {
	return s.add(ctx, to, `SELECT e.last_seq, e.n, e.data FROM event_subjects s
			JOIN events e ON e.org_id = s.org_id AND e.last_seq = s.last_seq
		WHERE s.org_id = $1 AND s.subject = $2 AND s.last_seq > $3 AND s.last_seq <= $4
		ORDER BY s.last_seq`, s.org, s.q.Subject, s.page.Last, to)
}

// add adds the matching events of a query's packs, which contain all selected ones up to a number.
// If the query has no more of them and the page is not full, the page reaches that number.
func (s *scan) add(ctx context.Context, to int64, query string, args ...any) error {
	read := 0
	err := each(ctx, s.eng, func(r rows) error {
		var p storedPack
		if err := s.eng.scanPack(r, &p); err != nil {
			return err
		}
		s.gap = s.gap || read == 0 && p.last-p.n > s.page.Last
		read++
		s.bytes += len(p.data)
		err := unpack(s.org, &p, s.page.Last, func(e *event.Event) bool {
			if len(s.page.Events) == s.q.Limit {
				return false
			}
			s.page.Last = e.Seq
			if s.q.Match(e) {
				if s.page.Events == nil {
					s.page.Events = make([]event.Event, 0, min(int64(s.q.Limit), p.n))
				}
				s.page.Events = append(s.page.Events, *e)
			}
			return true
		})
		if err == nil && s.full() {
			return errEnough
		}
		return err
	}, query+limit(pagePacks), args...)
	if errors.Is(err, errEnough) {
		return nil
	}
	if err == nil && read < pagePacks {
		s.gap = s.gap || read == 0 && s.page.Last < to
		s.page.Last = max(s.page.Last, to)
	}
	return err
}
