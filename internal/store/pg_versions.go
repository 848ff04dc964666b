package store

import (
	"context"
	"sync"
)

// versionReads lets callers share runs of a function for an org, such as the numbering of its events.
// A run may miss a write that finished before a caller asked. So callers that arrive during a run
// share the next one, which starts when it ends. There is one run at a time for an org, however many
// callers.
type versionReads struct {
	read func(ctx context.Context, org string) (uint64, error)

	mu      sync.Mutex
	running map[string]*versionRead // by org: the read after the running one; nil if no caller waits
}

// versionRead is a read that callers wait for.
type versionRead struct {
	done    chan struct{}
	version uint64
	err     error
}

func newVersionReads(read func(ctx context.Context, org string) (uint64, error)) *versionReads {
	return &versionReads{read: read, running: map[string]*versionRead{}}
}

// get returns the data version at some time after the call.
func (v *versionReads) get(ctx context.Context, org string) (uint64, error) {
	v.mu.Lock()
	next, running := v.running[org]
	if !running {
		v.running[org] = nil
		v.mu.Unlock()
		defer v.end(org)
		return v.read(ctx, org)
	}
	if next == nil {
		next = &versionRead{done: make(chan struct{})}
		v.running[org] = next
	}
	v.mu.Unlock()
	select {
	case <-next.done:
		return next.version, next.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// end starts the next read, if callers wait for it.
func (v *versionReads) end(org string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := v.running[org]
	if next == nil {
		delete(v.running, org)
		return
	}
	v.running[org] = nil
	go func() { // independent of the callers' contexts, which may all end
		defer v.end(org)
		defer close(next.done)
		next.version, next.err = v.read(context.Background(), org)
	}()
}
