package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// beatEvery is how often the worker asks whether the task was canceled: often enough to notice
// within two seconds.
const beatEvery = 1500 * time.Millisecond

// hold is this worker's lease of one task.
type hold struct {
	*Worker
	shift *shift
	task  string
	token string
	end   context.CancelCauseFunc // ends the handler's context
	turns *queue[Message]

	// reports is held while a report is sent: reports arrive in order, and no heartbeat overtakes
	// the last one.
	reports sync.Mutex
	seen    int64 // of the last response; later messages are delivered again until a response arrives

	mu      sync.Mutex
	expires time.Time // by the local clock
	over    error     // why the lease is over; nil: it is not
}

func (h *hold) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

func (h *hold) expiry() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.expires
}

// close marks the lease as over and ends the handler's context, unless the handler finished the
// task.
func (h *hold) close(why error) {
	h.mu.Lock()
	first := h.over == nil
	if first {
		h.over = why
	}
	h.mu.Unlock()
	if first {
		h.turns.close()
		if why != ErrFinished {
			h.log.Debug("stopped working on a task", "agent", h.agent, "task", h.task, "why", why)
			h.end(why)
		}
	}
}

// beat keeps the lease alive and receives cancellations and further messages. Asking costs the
// server little; extending the lease is a write, so it happens when half of it has passed.
func (h *hold) beat(ctx context.Context) {
	every := min(beatEvery, h.lease/4)
	for sleep(ctx, every*9/10+rand.N(every/10)) && h.ended() == nil {
		if !h.reports.TryLock() {
			continue // a report is being sent, which has the same effect
		}
		err := h.ask(ctx)
		h.reports.Unlock()
		switch {
		case err == nil || ctx.Err() != nil:
		case isStale(err):
			h.close(ErrLeaseLost)
		case time.Now().After(h.expiry()):
			h.close(fmt.Errorf("%w: %w", ErrLeaseLost, err))
		default:
			h.log.Warn("heartbeat failed", "agent", h.agent, "task", h.task, "error", err)
		}
	}
}

func (h *hold) ask(ctx context.Context) error {
	if h.ended() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, min(5*time.Second, h.lease/2)))
	defer cancel()
	return h.send(ctx, client.WorkReport{ExtendSeconds: h.extension()})
}

// extension returns by how much to extend the lease now; 0: not yet.
func (h *hold) extension() int {
	if time.Until(h.expiry()) > h.lease/2 {
		return 0
	}
	return int(h.lease / time.Second)
}

// send sends one report and processes the response.
func (h *hold) send(ctx context.Context, r client.WorkReport) error {
	began := time.Now() // the server counts from a later time
	r.Seen = h.seen
	deliver := h.alone
	if r.Status != "" && r.Status != client.TaskWorking {
		deliver = h.shift.deliver
	}
	a, err := deliver(ctx, h, r)
	if err != nil {
		return err
	}
	if r.ExtendSeconds > 0 {
		h.mu.Lock()
		h.expires = began.Add(time.Duration(r.ExtendSeconds) * time.Second)
		h.mu.Unlock()
	}
	h.turns.put(a.Messages...)
	h.seen = a.Seen
	if a.Canceled {
		h.close(ErrCanceled)
	}
	return nil
}

// alone sends a report in a request of its own.
func (*hold) alone(ctx context.Context, h *hold, r client.WorkReport) (*client.WorkProgress, error) {
	return h.leases.Report(ctx, h.token, r, once)
}

// report sends a report, and repeats it while the lease lasts. make gets whether an earlier attempt
// may have arrived. ends means that the report ends the lease: then a stale lease after such an
// attempt means that it did arrive.
func (h *hold) report(ctx context.Context, ends bool, make func(unsure bool) client.WorkReport) error {
	h.reports.Lock()
	defer h.reports.Unlock()
	unsure := false
	var pause backoff
	for {
		if over := h.ended(); over != nil {
			return over
		}
		r := make(unsure)
		if !ends {
			r.ExtendSeconds = h.extension()
		}
		tried, cancel := context.WithTimeout(ctx, h.patience())
		err := h.send(tried, r)
		cancel()
		switch {
		case err == nil && ends, isStale(err) && ends && unsure:
			h.close(ErrFinished) // no effect if the response was "canceled"
			if over := h.ended(); over != ErrFinished {
				return over
			}
			return nil
		case err == nil:
			return h.ended()
		case isStale(err):
			h.close(ErrLeaseLost)
			return ErrLeaseLost
		case ctx.Err() != nil:
			return err
		}
		unsure = unsure || mayHaveArrived(err)
		wait, again := pause.next(err)
		if !again {
			return err
		}
		if time.Now().Add(wait).After(h.expiry()) {
			h.close(fmt.Errorf("%w: %w", ErrLeaseLost, err))
			return h.ended()
		}
		h.log.Warn("report failed; trying again",
			"agent", h.agent, "task", h.task, "in", wait.Round(time.Millisecond), "error", err)
		sleep(ctx, wait)
	}
}

// patience returns how long to wait for the response to a report: not longer than the lease lasts,
// after which the handler must not continue.
func (h *hold) patience() time.Duration {
	return max(time.Second, min(reportTimeout, time.Until(h.expiry())))
}

// handBack returns the task to the queue.
func (h *hold) handBack() {
	if h.ended() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	err := h.leases.Return(ctx, h.token, once)
	h.close(ErrStopping)
	switch {
	case err == nil:
		h.log.Info("handed a task back to the queue", "agent", h.agent, "task", h.task)
	case !isStale(err):
		h.log.Warn("could not hand a task back; it returns to the queue when its lease expires",
			"agent", h.agent, "task", h.task, "error", err)
	}
}
