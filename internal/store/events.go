package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
)

// Events stores the logs of all orgs.
//
// A row of the log is a pack: the events of one commit, so that an event costs little more than
// its bytes. On SQLite the single writer numbers them in the transaction (flushEvents). On
// PostgreSQL, where transactions commit in another order than they could take numbers, a commit
// only leaves its pack in events_new, and packs are numbered after the commit (number in
// events_pg.go).
type Events struct{ *db }

// Events returns the implementation of event.Store.
func (s *Store) Events() Events { return Events{s.db} }

// Append adds events that report no change of a record, such as presence. All are added in one
// transaction, or none.
func (s Events) Append(ctx context.Context, events ...event.Event) error {
	if len(events) == 0 {
		return nil
	}
	return s.eng.add(ctx, func(t *tx) error {
		t.emit(events...)
		return nil
	})
}

// packed is an event as it is stored: one line of a pack, without its number.
type packed struct {
	org  string
	bit  event.Types
	at   int64
	line string
}

// packEvent encodes an event. Only the data may contain a tab or a new line, and as JSON it must
// not.
func packEvent(e *event.Event) packed {
	var b strings.Builder
	b.Grow(120 + len(e.Data))
	at := micros(e.At)
	b.WriteString(strconv.FormatInt(at, 10))
	for _, field := range [...]string{
		string(e.Type), strconv.Itoa(e.Version), e.ID, e.Subject, e.Actor, string(e.Scope),
	} {
		b.WriteByte('\t')
		b.WriteString(field)
	}
	b.WriteByte('\t')
	b.Write(e.Data)
	b.WriteByte('\n')
	return packed{e.Org, e.Type.Bit(), at, b.String()}
}

// emit adds an event to the log in the transaction of the change that it reports.
func (t *tx) emit(events ...event.Event) {
	for i := range events {
		t.events = append(t.events, packEvent(&events[i]))
	}
}

// pack is one row of the log.
type pack struct {
	org   string
	n, at int64
	types event.Types
	data  strings.Builder
}

const (
	maxPacked   = 100      // events in a pack
	maxPackSize = 64 << 10 // bytes in a pack, unless one event is larger
)

// packs returns the rows for the collected events, in their order for each org.
func packs(events []packed) []*pack {
	var out []*pack
	last := map[string]*pack{}
	for i := range events {
		e := &events[i]
		p := last[e.org]
		if p == nil || p.n == maxPacked || p.data.Len()+len(e.line) > maxPackSize {
			p = &pack{org: e.org}
			last[e.org] = p
			out = append(out, p)
		}
		p.n++
		p.at = e.at
		p.types |= e.bit
		p.data.WriteString(e.line)
	}
	return out
}

// unpack yields the events of a pack.
func unpack(org string, last, n int64, data string, yield func(*event.Event) bool) error {
	seq := last - n
	for line := range strings.Lines(data) {
		seq++
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 8)
		if len(fields) < 8 {
			return fmt.Errorf("event %d of org %s is malformed", seq, org)
		}
		at, err := strconv.ParseInt(fields[0], 10, 64)
		version, err2 := strconv.Atoi(fields[2])
		if err := errors.Join(err, err2); err != nil {
			return fmt.Errorf("event %d of org %s: %w", seq, org, err)
		}
		if !yield(&event.Event{
			Org: org, Seq: seq, At: fromMicros(at), Type: event.Type(fields[1]), Version: version,
			ID: fields[3], Subject: fields[4], Actor: fields[5], Scope: event.Scope(fields[6]), Data: []byte(fields[7]),
		}) {
			return nil
		}
	}
	return nil
}

// head is a row of event_heads.
type head struct{ seq, kept, indexed int64 }

// head reads where the log of an org ends. On PostgreSQL it first numbers the packs that were
// committed before: what was acknowledged before a read is in the log that it reads.
func (s Events) head(ctx context.Context, org string) (head, error) {
	for numbered := false; ; numbered = true {
		var h head
		waiting := 0
		found, err := one(ctx, s.eng, []any{&h.seq, &h.kept, &h.indexed, &waiting},
			`SELECT seq, kept, indexed, `+s.d.unnumbered+` FROM event_heads h WHERE org_id = $1`, org)
		switch {
		case err != nil:
			return h, err
		case !found:
			return h, errs.ErrNotFound
		case waiting == 0 || numbered: // what still waits was committed after the call
			return h, nil
		}
		if err := s.eng.number(ctx, org); err != nil {
			return h, err
		}
	}
}

const (
	scanWindow = 20_000  // numbers that one query covers at most
	scanBytes  = 4 << 20 // bytes of packs that one page reads
	pagePacks  = 256     // packs that one query returns
)

// Page implements event.Store. It reads a limited part of the log, so that a filter that selects
// little costs no more than one that selects all; Last says how far it came.
func (s Events) Page(ctx context.Context, org string, q event.Query) (event.Page, error) {
	h, err := s.head(ctx, org)
	if err != nil {
		return event.Page{}, err
	}
	out := event.Page{Last: max(q.After, h.kept-1), Head: h.seq, Kept: h.kept}
	if out.Missed = q.After > 0 && q.After < h.kept-1 || q.After > h.seq; out.Missed {
		out.Last = h.kept - 1
	}
	scan := scan{Events: s, org: org, q: &q, page: &out}
	if q.Subject != "" && out.Last < h.indexed {
		if err := scan.indexed(ctx, h.indexed); err != nil || scan.full() {
			return out, err
		}
	}
	// Without a filter, the first window has what the page needs, and no more.
	for window := int64(q.Limit + maxPacked); !scan.full() && out.Last < h.seq; window *= 4 {
		if err := scan.window(ctx, min(out.Last+min(window, scanWindow), h.seq)); err != nil {
			return out, err
		}
	}
	return out, nil
}

// scan reads packs into a page.
type scan struct {
	Events
	org   string
	q     *event.Query
	page  *event.Page
	bytes int
}

// full reports whether the page has enough.
func (s *scan) full() bool { return len(s.page.Events) >= s.q.Limit || s.bytes >= scanBytes }

// window reads the packs after page.Last that end at or before to.
func (s *scan) window(ctx context.Context, to int64) error {
	more, err := s.add(ctx, `SELECT last_seq, n, data FROM events
		WHERE org_id = $1 AND last_seq > $2 AND last_seq <= $3 AND ($4 = 0 OR types & $4 <> 0)
		ORDER BY last_seq`, s.org, s.page.Last, to, int64(s.q.Types))
	if err == nil && !more {
		s.page.Last = to
	}
	return err
}

// indexed reads the packs with the subject, up to the number where the index ends.
func (s *scan) indexed(ctx context.Context, to int64) error {
	more, err := s.add(ctx, `SELECT e.last_seq, e.n, e.data FROM event_subjects s
			JOIN events e ON e.org_id = s.org_id AND e.last_seq = s.last_seq
		WHERE s.org_id = $1 AND s.subject = $2 AND s.last_seq > $3 AND s.last_seq <= $4
		ORDER BY s.last_seq`, s.org, s.q.Subject, s.page.Last, to)
	if err == nil && !more {
		s.page.Last = to
	}
	return err
}

// add adds the matching events of a query's packs. more reports whether the query has further
// packs, or the page is full.
func (s *scan) add(ctx context.Context, query string, args ...any) (more bool, err error) {
	read := 0
	err = each(ctx, s.eng, func(r rows) error {
		var last, n int64
		var data string
		if err := r.Scan(&last, &n, &data); err != nil {
			return err
		}
		read++
		s.bytes += len(data)
		err := unpack(s.org, last, n, data, func(e *event.Event) bool {
			if e.Seq <= s.page.Last {
				return true
			}
			if len(s.page.Events) == s.q.Limit {
				return false
			}
			s.page.Last = e.Seq
			if s.q.Match(e) {
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
		return true, nil
	}
	return read == pagePacks, err
}

// maxSwept limits the events that one transaction indexes or deletes, roughly.
const maxSwept = 500

// Expire implements event.Store. It deletes packs whose events are all older than before.
func (s Events) Expire(ctx context.Context, before time.Time) (int, error) {
	orgs, err := strs(ctx, s.eng, `SELECT org_id FROM event_heads h WHERE kept <= seq AND $1 > (
			SELECT at FROM events e WHERE e.org_id = h.org_id ORDER BY last_seq LIMIT 1)`+limit(100), micros(before))
	return s.forEach(ctx, err, orgs, func(t *tx, org string) (int, error) { return t.expire(ctx, org, before) })
}

// IndexSubjects implements event.Store.
func (s Events) IndexSubjects(ctx context.Context) (int, error) {
	orgs, err := strs(ctx, s.eng, `SELECT org_id FROM event_heads WHERE indexed < seq`+limit(100))
	return s.forEach(ctx, err, orgs, func(t *tx, org string) (int, error) { return t.indexSubjects(ctx, org) })
}

// forEach runs a write for each org and returns the sum of their results.
func (s Events) forEach(
	ctx context.Context, err error, orgs []string, fn func(t *tx, org string) (int, error),
) (sum int, _ error) {
	for _, org := range orgs {
		if err != nil {
			break
		}
		n := 0
		err = s.eng.write(ctx, func(t *tx) (err error) {
			n, err = fn(t, org)
			return err
		})
		if err == nil {
			sum += n
		}
	}
	return sum, err
}

// oldest calls fn for the oldest packs of an org after a number, until it has seen enough events.
func (t *tx) oldest(ctx context.Context, org string, after int64, fn func(p *storedPack) error) error {
	events := int64(0)
	err := each(ctx, t, func(r rows) error {
		var p storedPack
		if err := r.Scan(&p.last, &p.n, &p.at, &p.data); err != nil {
			return err
		}
		if events += p.n; events > maxSwept && events > p.n {
			return errEnough
		}
		return fn(&p)
	}, `SELECT last_seq, n, at, data FROM events WHERE org_id = $1 AND last_seq > $2 ORDER BY last_seq`+limit(100),
		org, after)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// storedPack is a row of events.
type storedPack struct {
	last, n, at int64
	data        string
}

// subjects returns the subjects of a pack, each once.
func (p *storedPack) subjects(org string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	err := unpack(org, p.last, p.n, p.data, func(e *event.Event) bool {
		if !seen[e.Subject] {
			seen[e.Subject] = true
			list = append(list, e.Subject)
		}
		return true
	})
	return list, err
}

// expire deletes the oldest packs of an org, and returns how many events they had.
func (t *tx) expire(ctx context.Context, org string, before time.Time) (deleted int, err error) {
	kept := int64(0)
	err = t.oldest(ctx, org, 0, func(p *storedPack) error {
		if p.at >= micros(before) {
			return errEnough
		}
		deleted, kept = deleted+int(p.n), p.last+1
		t.exec(`DELETE FROM events WHERE org_id = $1 AND last_seq = $2`, org, p.last)
		subjects, err := p.subjects(org)
		for _, subject := range subjects {
			t.exec(`DELETE FROM event_subjects WHERE org_id = $1 AND subject = $2 AND last_seq = $3`,
				org, subject, p.last)
		}
		return err
	})
	if deleted > 0 {
		t.exec(`UPDATE event_heads SET kept = $2 WHERE org_id = $1 AND kept < $2`, org, kept)
	}
	return deleted, err
}

// indexSubjects adds packs of one org to the index, and returns how many. Several nodes may do it
// at once. The row of the head is changed last, so that nobody waits long for its lock.
func (t *tx) indexSubjects(ctx context.Context, org string) (added int, err error) {
	var indexed int64
	if _, err := one(ctx, t, []any{&indexed}, `SELECT indexed FROM event_heads WHERE org_id = $1`, org); err != nil {
		return 0, err
	}
	err = t.oldest(ctx, org, indexed, func(p *storedPack) error {
		added++
		indexed = p.last
		subjects, err := p.subjects(org)
		for _, subject := range subjects {
			t.exec(`INSERT INTO event_subjects (org_id, subject, last_seq) VALUES ($1, $2, $3)
				ON CONFLICT (org_id, subject, last_seq) DO NOTHING`, org, subject, p.last)
		}
		return err
	})
	if added > 0 {
		t.exec(`UPDATE event_heads SET indexed = $2 WHERE org_id = $1 AND indexed < $2`, org, indexed)
	}
	return added, err
}
