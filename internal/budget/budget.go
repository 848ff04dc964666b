// Package budget bounds the memory that requests and responses hold, and the processors that decode
// and encode large ones.
//
// A Pool bounds all requests of a process. Each principal and each org has a share of it, so no
// caller can use it up. An Account counts what one request holds; it travels in the request's
// context. Small amounts are not counted: the number of requests bounds them.
//
// The package knows neither HTTP nor what the bytes are.
package budget

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Limits are the bounds of a Pool, in bytes.
type Limits struct {
	Memory   int64 // all requests together; 0: no limit
	Response int64 // one response
}

// DefaultLimits leaves room for five responses of the largest size.
var DefaultLimits = Limits{Memory: 160 << 20, Response: 17 << 20}

const (
	// small is the number of bytes that an account may hold uncounted.
	small = 64 << 10
	// heavy is the number of held bytes from which on a request needs a lane.
	heavy = 128 << 10
	// patience is how long a request waits for memory or for a lane.
	patience = 4 * time.Second
	// insistence is how long a request waits after Insist.
	insistence = 30 * time.Second
	// orgShare and principalShare divide the memory: one half, one quarter.
	orgShare       = 2
	principalShare = 4
)

// ErrResponseTooLarge is returned for a part that would make a response too large.
var ErrResponseTooLarge = errs.New(errs.TooLarge, "response.too_large",
	"the response would be larger than the server sends at once; ask for less in one request")

const codeBusy = "server.busy"

// IsBusy reports whether err means that the pool had no room.
func IsBusy(err error) bool { return err != nil && errs.As(err).Code == codeBusy }

func errBusy() error {
	e := errs.New(errs.Unavailable, codeBusy,
		"the server holds as many large requests and responses as it can; try again in a moment")
	e.RetryAfter = time.Second
	return e
}

// Owner is the org and principal that bytes are counted for.
type Owner struct{ Org, Principal string }

// Pool is shared by all requests of a process. A nil Pool has no limits.
type Pool struct {
	limits Limits
	// lanes bounds how many requests decode or encode something large at the same time. Half of the
	// processors are left to small requests.
	lanes chan struct{}

	mu         sync.Mutex
	used       int64
	orgs       map[string]int64
	principals map[Owner]int64
	freed      chan struct{} // closed when bytes are given back; nil: no request waits
}

// NewPool makes a Pool. It returns nil if the limits bound nothing.
func NewPool(l Limits) *Pool {
	if l.Memory <= 0 {
		return nil
	}
	return &Pool{
		limits: l, lanes: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		orgs: map[string]int64{}, principals: map[Owner]int64{},
	}
}

// Used returns how many bytes are held now.
func (p *Pool) Used() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// hold takes n bytes for an owner. It waits for them until ctx ends.
func (p *Pool) hold(ctx context.Context, o Owner, n int64) error {
	for {
		freed, ok := p.try(o, n)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return errBusy()
		}
	}
}

// try takes n bytes if there is room. An owner that holds nothing may always take one portion if
// the pool has room: otherwise a task larger than the share could never be read.
func (p *Pool) try(o Owner, n int64) (freed <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fits := func(used, limit int64) bool { return used == 0 || used+n <= limit }
	if fits(p.used, p.limits.Memory) && fits(p.orgs[o.Org], p.limits.Memory/orgShare) &&
		fits(p.principals[o], p.limits.Memory/principalShare) {
		p.used += n
		p.orgs[o.Org] += n
		p.principals[o] += n
		return nil, true
	}
	if p.freed == nil {
		p.freed = make(chan struct{})
	}
	return p.freed, false
}

func (p *Pool) give(o Owner, n int64) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if p.orgs[o.Org] -= n; p.orgs[o.Org] == 0 {
		delete(p.orgs, o.Org)
	}
	if p.principals[o] -= n; p.principals[o] == 0 {
		delete(p.principals, o)
	}
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

// enter waits for a lane until ctx ends.
func (p *Pool) enter(ctx context.Context) error {
	select {
	case p.lanes <- struct{}{}:
		return nil
	default: // try first: if both cases are ready, select may choose ctx.Done
	}
	select {
	case p.lanes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errBusy()
	}
}

func (p *Pool) leave() { <-p.lanes }
