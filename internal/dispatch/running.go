package dispatch

import "sync"

// running tracks the tasks that agents of this process work on, to be able to stop them.
type running struct {
	mu sync.Mutex
	m  map[string]job // by uid
}

type job struct {
	lease string
	work  *Work
}

func newRunning() *running { return &running{m: map[string]job{}} }

func (r *running) add(uid, lease string, w *Work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m[uid] = job{lease, w}
}

// remove removes a task, unless a later lease has replaced the given one.
func (r *running) remove(uid, lease string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m[uid].lease == lease {
		delete(r.m, uid)
	}
}

// of returns the lease under which a task is worked on here, or "".
func (r *running) of(uid string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[uid].lease
}

// stop cancels the work under a lease that has ended.
func (r *running) stop(uid, lease string) {
	r.mu.Lock()
	j := r.m[uid]
	r.mu.Unlock()
	if j.work != nil && j.lease == lease {
		j.work.cancel(errCanceled)
	}
}

// tell tells the agent that works on a task that its sender has sent a message.
func (r *running) tell(uid string) {
	r.mu.Lock()
	j := r.m[uid]
	r.mu.Unlock()
	if j.work != nil {
		j.work.tell()
	}
}
