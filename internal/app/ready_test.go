package app

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestReadinessIsWhatTheLastCheckFound(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var found error
	now := time.Unix(1_700_000_000, 0)
	p := newProbe(func(context.Context) error { return found })
	p.now = func() time.Time { return now }
	if p.state() == nil {
		t.Error("ready before the first check")
	}
	p.once(t.Context())
	if err := p.state(); err != nil {
		t.Errorf("after a good check: %v", err)
	}
	found = broken
	p.once(t.Context())
	if err := p.state(); !errors.Is(err, broken) {
		t.Errorf("after a bad check: %v", err)
	}
	found = nil
	p.once(t.Context())
	now = now.Add(probeStale + time.Second)
	if p.state() == nil {
		t.Error("ready although the last good check is too old")
	}
}

// A check that hangs, as one that queues behind writes, must not make /readyz hang.
func TestReadinessDoesNotWaitForACheck(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	first := true
	p := newProbe(func(ctx context.Context) error {
		if first {
			first = false
			return nil
		}
		close(begun)
		<-end
		return nil
	})
	p.once(t.Context())
	go p.once(t.Context())
	<-begun
	if err := p.state(); err != nil {
		t.Error(err)
	}
	close(end)
}
