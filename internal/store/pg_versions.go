package store

import (
	"context"
	"sync"
)

// versionReads lets callers share reads of an org's data version. A read that has
// begun may miss what was written before a caller asked: those who come while one runs
// share the next, which begins when it ends. So there is one at a time for an org,
// whatever the number of callers.
type versionReads struct {
	read func(ctx context.Context, org string) (uint64, error)

	mu      sync.Mutex
	running map[string]*versionRead // by org: the read after the one that runs; nil: nobody waits
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

// get returns the version of the data as it is after the call.
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

// end lets the next read begin.
func (v *versionReads) end(org string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := v.running[org]
	if next == nil {
		delete(v.running, org)
		return
	}
	v.running[org] = nil
	go func() { // nobody's call: all of them may go away
		defer v.end(org)
		defer close(next.done)
		next.version, next.err = v.read(context.Background(), org)
	}()
}
