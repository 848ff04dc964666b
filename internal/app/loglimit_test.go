package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestRepeatedFailuresAreLoggedAtABoundedRate(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(1_700_000_000, 0)
	log := slog.New(newBoundedHandler(slog.NewTextHandler(&out, nil), func() time.Time { return now }))
	fail := func(route string) { log.With("a", 1).Error("request failed", "route", route, "status", 503) }
	for range 100 {
		fail("GET /a")
		log.Info("request")
	}
	fail("GET /b")
	if got := strings.Count(out.String(), "GET /a"); got != logBurst {
		t.Errorf("%d lines of one kind; want %d", got, logBurst)
	}
	if !strings.Contains(out.String(), "GET /b") || strings.Count(out.String(), "level=INFO") != 100 {
		t.Error("lines of another kind were left out")
	}
	out.Reset()
	now = now.Add(logWindow)
	fail("GET /a")
	if got := out.String(); !strings.Contains(got, "left_out=95") {
		t.Errorf("the next line is %s", got)
	}
	for i := range 3 * logKinds {
		log.Warn("x" + strings.Repeat("y", i%(2*logKinds)))
	}
}
