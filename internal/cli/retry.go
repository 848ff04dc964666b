package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxAttempts   = 5
	firstWait     = 200 * time.Millisecond
	longestWait   = 3 * time.Second
	maxRetryAfter = 30 * time.Second // a server that asks for more is not waited for
)

// patience says whether to send a failed call again, and when. A call is repeated
// if it was not carried out for sure (429, 503, no connection), or if repeating it
// does no harm (it reads, or carries an Idempotency-Key).
func patience(r call, err error, attempt int) (time.Duration, bool) {
	if attempt >= maxAttempts {
		return 0, false
	}
	wait := min(firstWait<<(attempt-1), longestWait)
	wait = wait/2 + rand.N(wait) // spread, so that clients do not come back all at once
	var p *problem
	var u *unreachable
	switch {
	case errors.As(err, &p) && (p.status == http.StatusTooManyRequests || p.status == http.StatusServiceUnavailable):
		if p.retryAfter > maxRetryAfter {
			return 0, false
		}
		return max(wait, p.retryAfter), true
	case errors.As(err, &u):
		return wait, r.repeatable() || u.dialing()
	}
	return 0, false
}

func reason(err error) string {
	var p *problem
	if errors.As(err, &p) {
		return fmt.Sprintf("the server answered %d %s", p.status, http.StatusText(p.status))
	}
	return err.Error()
}

// problem is a refusal by the server (RFC 9457).
type problem struct {
	Title     string   `json:"title"`
	Detail    string   `json:"detail"`
	Code      string   `json:"code"`
	RequestID string   `json:"request_id"`
	Allowed   []string `json:"allowed"`
	Errors    []struct {
		Pointer   string `json:"pointer"`
		Parameter string `json:"parameter"`
		Detail    string `json:"detail"`
	} `json:"errors"`

	status     int
	retryAfter time.Duration
}

func newProblem(res *http.Response, body []byte) *problem {
	p := &problem{}
	if refused, ok := rpcProblem(body); ok {
		*p = refused
	} else if json.Unmarshal(body, p) != nil || p.Detail == "" {
		*p = problem{Detail: "the server answered " + res.Status}
		if to := res.Header.Get("Location"); to != "" {
			p.Detail += " to " + to + "; use that address as --server if it is right"
		}
	}
	if p.RequestID == "" {
		p.RequestID = res.Header.Get("X-Request-Id")
	}
	p.status = res.StatusCode
	p.retryAfter = parseRetryAfter(res.Header.Get("Retry-After"), time.Now())
	return p
}

func parseRetryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		return time.Duration(min(n, 1<<20)) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// Error is the refusal in lines: the sentence, each field, what would be
// accepted, and the id to quote.
func (p *problem) Error() string {
	var b strings.Builder
	if len(p.Errors) > 1 {
		// The detail would say of all fields in one line what follows line by line.
		b.WriteString("the server did not accept these fields:")
	} else {
		b.WriteString(p.Detail)
	}
	for _, f := range p.Errors {
		if len(p.Errors) == 1 && strings.Contains(p.Detail, f.Detail) {
			break
		}
		name := f.Parameter
		if name == "" {
			name = strings.TrimPrefix(f.Pointer, "/")
		}
		fmt.Fprintf(&b, "\n  %s: %s", name, f.Detail)
	}
	if len(p.Allowed) > 0 {
		fmt.Fprintf(&b, "\n  allowed: %s", strings.Join(p.Allowed, ", "))
	}
	if p.Code != "" {
		fmt.Fprintf(&b, "\n  code: %s", p.Code)
	}
	if p.RequestID != "" {
		fmt.Fprintf(&b, "\n  request id: %s", p.RequestID)
	}
	return b.String()
}
