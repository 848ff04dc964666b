package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

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

// Append adds events without the change of a record: tests use it. All are added in one
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

// packEvent encodes an event: fields between tabs, and a new line. So no field may contain either.
// JSON can do without them, and no id has them. PostgreSQL reads field 5, the subject, in SQL.
func packEvent(e *event.Event) (packed, error) {
	if !e.Type.Known() {
		return packed{}, fmt.Errorf("%q is not a type of event", e.Type)
	}
	if len(e.Subject) > maxSubject {
		return packed{}, fmt.Errorf("the subject of a %s event has %d bytes; %d are allowed", e.Type, len(e.Subject),
			maxSubject)
	}
	data, err := oneLine(e.Data)
	if err != nil {
		return packed{}, fmt.Errorf("the data of a %s event about %q is not JSON: %w", e.Type, e.Subject, err)
	}
	at := micros(e.At)
	var b strings.Builder
	var digits [20]byte
	b.Grow(80 + len(e.ID) + len(e.Subject) + len(e.Actor) + len(e.Scope) + len(data))
	b.Write(strconv.AppendInt(digits[:0], at, 10))
	b.WriteByte('\t')
	b.WriteString(string(e.Type))
	b.WriteByte('\t')
	b.Write(strconv.AppendInt(digits[:0], int64(e.Version), 10))
	for _, field := range [...]string{e.ID, e.Subject, e.Actor, string(e.Scope)} {
		if strings.ContainsAny(field, "\t\n\x00") {
			return packed{}, fmt.Errorf("a field of a %s event contains a control character: %q", e.Type, field)
		}
		b.WriteByte('\t')
		b.WriteString(field)
	}
	b.WriteByte('\t')
	b.Write(data)
	b.WriteByte('\n')
	return packed{e.Org, e.Type.Bit(), at, b.String()}, nil
}

// maxSubject limits a subject, in bytes: PostgreSQL does not index long texts.
const maxSubject = 1000

// oneLine returns JSON without tabs and new lines, which it may have only between its values.
func oneLine(data json.RawMessage) (json.RawMessage, error) {
	switch {
	case len(data) == 0:
		return empty, nil
	case bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\t') < 0 && bytes.IndexByte(data, 0) < 0:
		return data, nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, data)
	return b.Bytes(), err
}

// emit adds events to the logs of their orgs in the transaction of the change that they report. An
// event that cannot be stored fails the write; see decide.
func (t *tx) emit(events ...event.Event) {
	for i := range events {
		p, err := packEvent(&events[i])
		if err != nil {
			t.invalid = errors.Join(t.invalid, err)
			continue
		}
		t.events = append(t.events, p)
	}
}

// pack is one row of the log.
type pack struct {
	org   string
	n, at int64 // at is the time of its newest event
	types event.Types
	lines []string
	size  int
}

// data returns the text of the row.
func (p *pack) data() string { return strings.Join(p.lines, "") }

const (
	maxPacked   = 100      // events in a pack; it must not shrink, because readers rely on it
	maxPackSize = 64 << 10 // bytes in a pack, unless one event is larger
)

// packs returns the rows for the collected events, in their order for each org.
func packs(events []packed) []*pack {
	var out []*pack
	var p *pack
	var others map[string]*pack // the last pack of each org; nil as long as there is one org
	for i := range events {
		e := &events[i]
		if p != nil && p.org != e.org {
			if others == nil {
				others = map[string]*pack{}
			}
			others[p.org] = p
			p = others[e.org]
		}
		if p == nil || p.n == maxPacked || p.size+len(e.line) > maxPackSize {
			p = &pack{org: e.org}
			out = append(out, p)
		}
		p.n++
		p.at = max(p.at, e.at)
		p.types |= e.bit
		p.size += len(e.line)
		p.lines = append(p.lines, e.line)
	}
	return out
}

// unpack yields the events of a pack with numbers above after.
func unpack(org string, p *storedPack, after int64, yield func(*event.Event) bool) error {
	seq := p.last - p.n
	for line := range strings.Lines(p.data) {
		if seq++; seq <= after {
			continue
		}
		e, err := parseEvent(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return fmt.Errorf("event %d of org %s: %w", seq, org, err)
		}
		e.Org, e.Seq = org, seq
		if !yield(&e) {
			return nil
		}
	}
	if seq != p.last {
		return fmt.Errorf("the pack of events up to %d of org %s has another number of events than %d", p.last, org, p.n)
	}
	return nil
}

// storedPack is a row of events.
type storedPack struct {
	last, n, at int64
	data        string
}

// parseEvent reverses packEvent, except for the org.
func parseEvent(line string) (event.Event, error) {
	var fields [8]string
	for i := range len(fields) - 1 {
		var found bool
		if fields[i], line, found = strings.Cut(line, "\t"); !found {
			return event.Event{}, errors.New("a stored event is malformed")
		}
	}
	at, err := strconv.ParseInt(fields[0], 10, 64)
	version, err2 := strconv.Atoi(fields[2])
	if err := errors.Join(err, err2); err != nil {
		return event.Event{}, err
	}
	return event.Event{
		At: fromMicros(at), Type: event.Type(fields[1]), Version: version, ID: fields[3], Subject: fields[4],
		Actor: fields[5], Scope: event.Scope(fields[6]), Data: []byte(line),
	}, nil
}
