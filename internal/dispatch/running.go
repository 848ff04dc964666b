package dispatch

import (
	"context"
	"sync"
)

// running knows what the agents of this process work on, and under which lease, to
// stop them.
type running struct {
	mu sync.Mutex
	m  map[string]job // by uid
}

type job struct {
	lease  string
	cancel context.CancelCauseFunc
}

func newRunning() *running { return &running{m: map[string]job{}} }

func (r *running) add(uid, lease string, cancel context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m[uid] = job{lease, cancel}
}

// remove forgets the work, unless a later lease has taken its place.
func (r *running) remove(uid, lease string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m[uid].lease == lease {
		delete(r.m, uid)
	}
}

// of returns the lease under which a task is worked on here; empty: it is not.
func (r *running) of(uid string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[uid].lease
}

// stop ends the work under a lease that is over.
func (r *running) stop(uid, lease string) {
	r.mu.Lock()
	j := r.m[uid]
	r.mu.Unlock()
	if j.cancel != nil && j.lease == lease {
		j.cancel(errCanceled)
	}
}
