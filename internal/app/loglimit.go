package app

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// logBurst warnings and errors of one kind are written per logWindow. If the store is
	// down, every request fails with the same message.
	logWindow = 10 * time.Second
	logBurst  = 5
	// logKinds bounds the number of kinds that are kept in memory.
	logKinds = 1000
)

// boundedHandler drops repeated warnings and errors. Lines have the same kind if their
// messages are equal except for digits, and their routes and statuses are equal. The first
// line after a window reports how many of its kind were dropped.
type boundedHandler struct {
	slog.Handler
	seen *seenLines
}

type seenLines struct {
	now func() time.Time

	mu    sync.Mutex
	kinds map[string]*seenLine
}

type seenLine struct {
	since   time.Time // start of the window
	written int
	leftOut int64
}

func newBoundedHandler(h slog.Handler, now func() time.Time) slog.Handler {
	return boundedHandler{h, &seenLines{now: now, kinds: map[string]*seenLine{}}}
}

// Handle implements slog.Handler.
func (h boundedHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	write, leftOut := h.seen.note(kindOf(r))
	if !write {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int64("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h boundedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundedHandler{h.Handler.WithAttrs(attrs), h.seen}
}

// WithGroup implements slog.Handler.
func (h boundedHandler) WithGroup(name string) slog.Handler {
	return boundedHandler{h.Handler.WithGroup(name), h.seen}
}

func kindOf(r slog.Record) string {
	var b strings.Builder
	b.WriteString(strings.Map(func(c rune) rune {
		if '0' <= c && c <= '9' {
			return -1
		}
		return c
	}, r.Message))
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "route" || a.Key == "status" {
			b.WriteByte(0)
			b.WriteString(a.Value.String())
		}
		return true
	})
	return b.String()
}

// note counts a line. It returns whether to write it, and how many were dropped before it.
func (s *seenLines) note(kind string) (write bool, leftOut int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	k := s.kinds[kind]
	if k == nil {
		if len(s.kinds) >= logKinds {
			clear(s.kinds)
		}
		k = &seenLine{since: now}
		s.kinds[kind] = k
	}
	if now.Sub(k.since) >= logWindow {
		leftOut = k.leftOut
		*k = seenLine{since: now}
	}
	if k.written >= logBurst {
		k.leftOut++
		return false, 0
	}
	k.written++
	return true, leftOut
}
