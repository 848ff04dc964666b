package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// heard is an engine that records how many bytes its last query would send.
type heard struct {
	engine
	bytes int
}

func (h *heard) query(ctx context.Context, sql string, args ...any) (rows, error) {
	h.bytes = 0
	_, err := one(ctx, h.engine, []any{&h.bytes},
		`SELECT coalesce(sum(octet_length(data)), 0) FROM (`+sql+`) sent`, args...)
	if err != nil {
		return nil, err
	}
	return h.engine.query(ctx, sql, args...)
}

// TestPostgresSendsNoMoreThanIsRead reads a few of many large rows. A driver for PostgreSQL receives
// all rows of a query, also those that are not scanned.
func TestPostgresSendsNoMoreThanIsRead(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		addTasks(t, s, "a", 1)
		large := strings.Repeat("x", 40<<10)
		for i := range 20 {
			err := s.eng.write(t.Context(), func(x *tx) error {
				row := logRow{seq: int64(i + 2), at: 1, data: `[{"K":"` + large + `"}]`}
				x.insertEvents(&task.Task{Org: "a", UID: "t000000"}, []logRow{row})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			m := dispatch.DirectMessage{Org: "a", Agent: "bot", ID: fmt.Sprintf("m%02d", i), From: annOf("a"), At: time.Now()}
			m.Message.Parts = []task.Part{{Kind: task.TextPart, Text: large}}
			if err := s.Mailbox().Put(t.Context(), m, dispatch.DefaultMailbox); err != nil {
				t.Fatal(err)
			}
		}
		h := &heard{engine: s.eng}
		s.eng = h
		defer func() { s.eng = h.engine }()
		check := func(what string, n, want, most int, err error) {
			t.Helper()
			if err != nil || n != want {
				t.Fatalf("%s: %d, %v, want %d", what, n, err, want)
			}
			if s.d.name == "postgres" && h.bytes > most {
				t.Errorf("%s: %d bytes are sent, want at most %d", what, h.bytes, most)
			}
		}
		messages, err := s.Mailbox().List(t.Context(), "a", "bot", dispatch.Batch{Most: 100, Bytes: 100 << 10})
		check("messages", len(messages), 2, 100<<10, err)
		messages, err = s.Mailbox().List(t.Context(), "a", "bot", dispatch.Batch{Most: 100, Bytes: 1})
		check("a message that is larger than the limit", len(messages), 1, 50<<10, err)
		events, err := s.Tasks().Events(t.Context(), "a", "t000000", 1, 100)
		check("events", len(events), 1, pageBytes, err)
	})
}
