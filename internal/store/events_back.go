package store

import (
	"context"
	"errors"
	"slices"

	"github.com/parley-dev/parley/internal/event"
)

// PageBack implements event.Store. Like Page it reads a limited part of the log.
func (s Events) PageBack(ctx context.Context, org string, q event.BackQuery) (event.BackPage, error) {
	h, err := s.head(ctx, org)
	if err != nil {
		return event.BackPage{}, err
	}
	scan := backScan{Events: s, org: org, q: &q, head: h, page: event.BackPage{First: h.seq + 1, Kept: h.kept}}
	if q.Before > 0 {
		scan.page.First = min(q.Before, h.seq+1)
	}
	err = scan.read(ctx)
	return scan.page, err
}

// backScan reads packs into a page, from the newest to the oldest.
type backScan struct {
	Events
	org   string
	q     *event.BackQuery
	head  head
	page  event.BackPage
	bytes int
}

// full reports whether the page has enough.
func (s *backScan) full() bool { return len(s.page.Events) >= s.q.Limit || s.bytes >= scanBytes }

// read reads the part of the log without an index of subjects in growing windows, and the rest by
// the index if there is a subject.
func (s *backScan) read(ctx context.Context) error {
	end := max(s.head.kept, s.page.First-scanWindow)
	if s.q.Subject != "" {
		end = max(end, s.head.indexed+1)
	}
	// Without a filter, the first window has what the page needs, and no more.
	for window := int64(s.q.Limit); !s.full() && s.page.First > end; window = min(4*window+maxPacked, scanWindow) {
		if err := s.window(ctx, max(s.page.First-window, end)); err != nil {
			return err
		}
	}
	for s.q.Subject != "" && s.page.First <= s.head.indexed+1 && s.page.First > s.head.kept && !s.full() {
		if err := s.indexed(ctx); err != nil {
			return err
		}
	}
	return nil
}

// highest returns the largest last number of a pack that may have events before page.First.
func (s *backScan) highest() int64 { return min(s.page.First+maxPacked-2, s.head.seq) }

// window reads the packs with events before page.First, down to a number, which can be in the
// middle of a pack.
func (s *backScan) window(ctx context.Context, to int64) error {
	return s.add(ctx, to, `SELECT last_seq, n, data FROM events
		WHERE org_id = $1 AND last_seq >= $2 AND last_seq <= $3
			AND (CAST($4 AS BIGINT) = 0 OR types & CAST($4 AS BIGINT) <> 0)
		ORDER BY last_seq DESC`, s.org, to, s.highest(), int64(s.q.Types))
}

// indexed reads the packs with the subject, down to the oldest that is kept.
func (s *backScan) indexed(ctx context.Context) error {
	return s.add(ctx, s.head.kept, `SELECT e.last_seq, e.n, e.data FROM event_subjects s
			JOIN events e ON e.org_id = s.org_id AND e.last_seq = s.last_seq
		WHERE s.org_id = $1 AND s.subject = $2 AND s.last_seq >= $3 AND s.last_seq <= $4
		ORDER BY s.last_seq DESC`, s.org, s.q.Subject, s.head.kept, min(s.highest(), s.head.indexed))
}

// add adds the matching events of a query's packs, which contain all selected ones down to a
// number. If the query has no more of them and the page is not full, the page reaches that number.
func (s *backScan) add(ctx context.Context, to int64, query string, args ...any) error {
	read := 0
	err := each(ctx, s.eng, func(r rows) error {
		var p storedPack
		if err := s.eng.scanPack(r, &p); err != nil {
			return err
		}
		read++
		s.bytes += len(p.data)
		if err := s.take(&p); err != nil || !s.full() {
			return err
		}
		return errEnough
	}, query+limit(pagePacks), args...)
	if errors.Is(err, errEnough) {
		return nil
	}
	if err == nil && read < pagePacks {
		s.page.First = min(s.page.First, to)
	}
	return err
}

// take adds the matching events of a pack, until the page is full.
func (s *backScan) take(p *storedPack) error {
	var events []event.Event
	err := unpack(s.org, p, 0, func(e *event.Event) bool {
		events = append(events, *e)
		return true
	})
	for _, e := range slices.Backward(events) {
		if e.Seq >= s.page.First {
			continue
		}
		if len(s.page.Events) == s.q.Limit {
			break
		}
		s.page.First = e.Seq
		if s.q.Match(&e) {
			s.page.Events = append(s.page.Events, e)
		}
	}
	return err
}
