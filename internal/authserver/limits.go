package authserver

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// Limits of the endpoints that need no access token. A fleet behind one IP address that
// refreshes its tokens every 15 minutes stays far below them.
const (
	// Per IP address: 250 requests at once, then 50 per second.
	addressBurst = 250
	addressEvery = 20 * time.Millisecond
	// Per client: 100 requests at once, then 20 per second.
	clientBurst = 100
	clientEvery = 50 * time.Millisecond

	// Open questions: authorization requests that wait for a person.
	maxQuestions           = 10_000
	maxQuestionsPerAddress = 100
)

// callLimits are the limits of the endpoints that clients call.
type callLimits struct {
	addresses *httpx.Throttle
	clients   *httpx.Throttle
	questions *questions
}

func newCallLimits(now func() time.Time) callLimits {
	return callLimits{
		addresses: httpx.NewThrottle(addressEvery, addressBurst, now),
		clients:   httpx.NewThrottle(clientEvery, clientBurst, now),
		questions: newQuestions(now),
	}
}

// secretClient returns the id of the client that the request authenticates as, or empty if it
// has no secret. The form must have been parsed.
func secretClient(r *http.Request) string {
	if id, secret, ok := r.BasicAuth(); ok && secret != "" {
		return id
	}
	if r.PostForm.Get("client_secret") != "" {
		return r.PostForm.Get("client_id")
	}
	return ""
}

// refuseCall responds to a client with an OAuth error.
func refuseCall(w http.ResponseWriter, err error) {
	e := errs.As(err)
	w.Header().Set("Retry-After", retryAfter(e))
	writeJSON(w, http.StatusTooManyRequests, protocolError{"temporarily_unavailable", e.Message})
}

// refusePage responds to a person with a page.
func (s *server) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Retry-After", retryAfter(errs.As(err)))
	s.Pages.Problem(w, r, http.StatusTooManyRequests,
		"There were too many requests from your network. Wait a moment and try again.")
}

func retryAfter(e *errs.Error) string {
	return strconv.Itoa(max(1, int((e.RetryAfter+time.Second-1)/time.Second)))
}

// questions counts the open questions of this process, in total and by the IP address of the
// browser.
type questions struct {
	now func() time.Time

	mu    sync.Mutex
	open  map[identity.Hash]question
	count map[string]int // by address, including reserved ones
	all   int
	swept time.Time
}

type question struct {
	address string
	expires time.Time
}

func newQuestions(now func() time.Time) *questions {
	return &questions{now: now, open: map[identity.Hash]question{}, count: map[string]int{}}
}

// reserve checks that one more question may be opened. done must be called in any case when
// the request ends.
func (q *questions) reserve(address string) (done func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep()
	if q.all >= maxQuestions || q.count[address] >= maxQuestionsPerAddress {
		e := errs.New(errs.RateLimited, "oauth.too_many_questions",
			"too many authorization requests wait for a decision; decide on some, or wait until they expire")
		e.RetryAfter = time.Minute
		return nil, e
	}
	q.add(address, 1)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.add(address, -1)
	}, nil
}

// put counts an open question. A question is counted once, even if it is put again.
func (q *questions) put(id identity.Hash, address string, expires time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.open[id]; !known {
		q.open[id] = question{address, expires}
		q.add(address, 1)
	}
}

// end stops counting a question.
func (q *questions) end(id identity.Hash) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if one, known := q.open[id]; known {
		delete(q.open, id)
		q.add(one.address, -1)
	}
}

func (q *questions) add(address string, n int) {
	q.all += n
	if q.count[address] += n; q.count[address] == 0 {
		delete(q.count, address)
	}
}

// sweep removes expired questions, every few seconds.
func (q *questions) sweep() {
	now := q.now()
	if now.Sub(q.swept) < 5*time.Second {
		return
	}
	q.swept = now
	for id, one := range q.open {
		if !one.expires.After(now) {
			delete(q.open, id)
			q.add(one.address, -1)
		}
	}
}
