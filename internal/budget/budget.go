// Package budget bounds the memory that requests and responses hold, and the
// processors that decode and encode large ones.
//
// A Pool is what all of them may hold together. Each principal and each org has a
// share of it, so that no caller can use it up. An Account is what one request
// holds; it travels in the request's context. Small amounts are not counted: they
// are bounded by the number of requests.
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
	Pool     int64 // of everything together; 0: no bound
	Response int64 // of one response
}

// DefaultLimits leave room for six responses of the largest size.
var DefaultLimits = Limits{Pool: 192 << 20, Response: 17 << 20}

const (
	// small is what an account may hold uncounted.
	small = 64 << 10
	// heavy is from how many bytes on a request works in one of the pool's lanes.
	heavy = 512 << 10
	// patience is how long a request waits for others to give bytes back.
	patience = 4 * time.Second
	// orgShare and principalShare divide the pool.
	orgShare       = 2
	principalShare = 4
)

// ErrResponseTooLarge refuses a part of a response that would make it too large.
var ErrResponseTooLarge = errs.New(errs.TooLarge, "response.too_large",
	"the response would be larger than the server sends at once; ask for less, in a request of its own")

const codeBusy = "server.busy"

// IsBusy reports whether err says that the pool had no room.
func IsBusy(err error) bool { return err != nil && errs.As(err).Code == codeBusy }

func errBusy() error {
	e := errs.New(errs.Unavailable, codeBusy, "the server holds as many large requests and responses as it can; try again in a moment")
	e.RetryAfter = time.Second
	return e
}

// Owner is who pays.
type Owner struct{ Org, Principal string }

// Pool is shared by all requests of a process. A nil Pool bounds nothing.
type Pool struct {
	Limits
	// lanes has a place for everyone that decodes or encodes something large. Half of
	// the processors are left to small requests.
	lanes chan struct{}

	mu         sync.Mutex
	used       int64
	orgs       map[string]int64
	principals map[Owner]int64
	freed      chan struct{} // closed when bytes are given back; nil: no one waits
}

// NewPool makes a Pool.
func NewPool(l Limits) *Pool {
	return &Pool{Limits: l, lanes: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), orgs: map[string]int64{}, principals: map[Owner]int64{}}
}

// Work waits for a lane until ctx ends. done must be called when the work on n bytes is
// done, before anything waits for a client. Little work needs no lane.
func (p *Pool) Work(ctx context.Context, n int64) (done func(), err error) {
	if p == nil || p.Pool <= 0 || n < heavy {
		return func() {}, nil
	}
	leave := sync.OnceFunc(func() { <-p.lanes })
	select {
	case p.lanes <- struct{}{}:
		return leave, nil
	default: // of two ready cases a select takes any
	}
	select {
	case p.lanes <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, errBusy()
	}
}

// Used is how many bytes are held now.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Hold takes n bytes for an owner, and waits for them until ctx ends. The returned
// function gives them back; it must be called once.
func (p *Pool) Hold(ctx context.Context, o Owner, n int64) (release func(), err error) {
	if p == nil || p.Pool <= 0 || n <= 0 {
		return func() {}, nil
	}
	for {
		freed, ok := p.try(o, n)
		if ok {
			return func() { p.give(o, n) }, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, errBusy()
		}
	}
}

// try takes n bytes if there is room for them. An owner that holds nothing may always
// have one portion, if the pool has room: a share that is smaller than a single task
// would lock the task away.
func (p *Pool) try(o Owner, n int64) (freed <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fits := func(used, limit int64) bool { return used == 0 || used+n <= limit }
	if fits(p.used, p.Pool) && fits(p.orgs[o.Org], p.Pool/orgShare) && fits(p.principals[o], p.Pool/principalShare) {
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

// Account is what one request holds. It belongs to the goroutine of the request. The
// zero Account, and a nil one, are bound by nothing.
type Account struct {
	Pool  *Pool
	Owner Owner

	response int64     // bytes of the response so far
	held     int64     // bytes of the pool
	large    *holdings // nil: the request is small, as most are
}

// holdings is what the account of a large request remembers.
type holdings struct {
	until    time.Time // until when the request waits, however often; zero: it has not waited yet
	releases []func()
	worked   func() // leaves the lane; nil: the request is in none
}

// holdings returns those of the account, which it has from now on.
func (a *Account) holdings() *holdings {
	if a.large == nil {
		a.large = &holdings{}
	}
	return a.large
}

// Key is the context key of an Account.
type Key struct{}

// From returns the account of the request with the given context; nil: it has none.
func From(ctx context.Context) *Account {
	a, _ := ctx.Value(Key{}).(*Account)
	return a
}

// Take counts n bytes of the response, and takes twice as much from the pool: they
// are held as values and as text. It waits a few seconds for room. Release, at the end
// of the request, gives everything back.
func (a *Account) Take(ctx context.Context, n int64) error {
	if a == nil || a.Pool == nil {
		return nil
	}
	if a.response > 0 && a.response+n > a.Pool.Response {
		return ErrResponseTooLarge
	}
	if err := a.Hold(ctx, 2*n); err != nil {
		return err
	}
	if err := a.Work(ctx); err != nil {
		a.undo(2 * n)
		return err
	}
	a.response += n
	return nil
}

// Work waits for a lane if what the account holds is large. The request leaves the
// lane with Settle.
func (a *Account) Work(ctx context.Context) error {
	if a == nil || a.Pool == nil || a.held < heavy || a.holdings().worked != nil {
		return nil
	}
	ctx, cancel := a.wait(ctx)
	defer cancel()
	worked, err := a.Pool.Work(ctx, a.held)
	if err == nil {
		a.large.worked = worked
	}
	return err
}

// Lane is Work for what several requests share: n bytes, until done is called.
func (a *Account) Lane(ctx context.Context, n int64) (done func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	a.Settle() // one request must not wait for itself
	return a.Pool.Work(ctx, n)
}

// Settle leaves the lane: what is left to do is to wait, for the client or the agent.
func (a *Account) Settle() {
	if a != nil && a.large != nil && a.large.worked != nil {
		a.large.worked()
		a.large.worked = nil
	}
}

// wait bounds how long the request waits, however often it has to.
func (a *Account) wait(ctx context.Context) (context.Context, context.CancelFunc) {
	h := a.holdings()
	if h.until.IsZero() {
		h.until = time.Now().Add(patience)
	}
	return context.WithDeadline(ctx, h.until)
}

// Try is Take that does not wait, for a part that the response can do without.
func (a *Account) Try(n int64) error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return a.Take(now, n)
}

// Hold takes n bytes from the pool until Release. It waits a few seconds for room.
func (a *Account) Hold(ctx context.Context, n int64) error {
	if a == nil || a.Pool == nil {
		return nil
	}
	a.held += n
	if a.held <= small {
		return nil
	}
	ctx, cancel := a.wait(ctx)
	defer cancel()
	release, err := a.Pool.Hold(ctx, a.Owner, n)
	if err != nil {
		a.held -= n
		return err
	}
	a.large.releases = append(a.large.releases, release)
	return nil
}

// Borrow takes n bytes from the pool until the returned function is called, for what
// outlives the request or ends before it. It waits a few seconds for room.
func (a *Account) Borrow(ctx context.Context, n int64) (release func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return a.Pool.Hold(ctx, a.Owner, n)
}

// undo gives back what the last Hold took.
func (a *Account) undo(n int64) {
	if a.held > small {
		last := len(a.large.releases) - 1
		a.large.releases[last]()
		a.large.releases = a.large.releases[:last]
	}
	a.held -= n
}

// Release gives back what the account holds. The account can be used again.
func (a *Account) Release() {
	if a == nil {
		return
	}
	a.response, a.held = 0, 0
	if a.large == nil {
		return
	}
	a.Settle()
	for _, release := range a.large.releases {
		release()
	}
	a.large = nil
}
