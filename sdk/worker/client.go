package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	reportTimeout = 15 * time.Second
	maxAnswer     = 1 << 29 // more than a hundred of the largest tasks need in practice
	firstPause    = 200 * time.Millisecond
	longestPause  = 10 * time.Second
	longestAfter  = time.Minute // of Retry-After
)

// Error is a refusal by the server.
type Error struct {
	Status    int    // of HTTP
	Code      string // such as auth.invalid
	Detail    string // a sentence
	RequestID string // to quote to whoever runs the server

	retryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("worker: the server answered %d: %s", e.Status, e.Detail)
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	return s
}

func (w *Worker) path(parts ...string) string {
	p := w.server + "/api/v1/agents/" + url.PathEscape(w.agent)
	for _, s := range parts {
		p += "/" + url.PathEscape(s)
	}
	return p
}

func (w *Worker) post(ctx context.Context, to string, in, out any) error {
	return w.request(ctx, http.MethodPost, to, in, out)
}

// request sends one request, once.
func (w *Worker) request(ctx context.Context, method, to string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	if res.StatusCode/100 != 2 {
		return refusal(res, data)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the server's answer is not what was expected: %w", err)
	}
	return nil
}

func refusal(res *http.Response, body []byte) *Error {
	var p struct {
		Detail    string `json:"detail"`
		Code      string `json:"code"`
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal(body, &p) != nil || p.Detail == "" {
		p.Detail = http.StatusText(res.StatusCode)
	}
	e := &Error{Status: res.StatusCode, Code: p.Code, Detail: p.Detail, RequestID: p.RequestID}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
		e.retryAfter = min(time.Duration(min(n, 3600))*time.Second, longestAfter)
	}
	return e
}

// isStale reports that the lease is not live any more.
func isStale(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// mayHaveArrived reports that a request without a good answer may have been carried out.
func mayHaveArrived(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Status >= 500
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op != "dial"
}

// backoff makes growing pauses between tries.
type backoff struct{ tries int }

func (b *backoff) reset() { b.tries = 0 }

// next is how long to wait before the next try; false: no try can help.
func (b *backoff) next(err error) (time.Duration, bool) {
	var after time.Duration
	var e *Error
	if errors.As(err, &e) {
		after = e.retryAfter
		passing := e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout || e.Status >= 500
		if !passing {
			return 0, false
		}
	}
	var unsendable *json.MarshalerError
	if errors.As(err, &unsendable) {
		return 0, false
	}
	pause := min(firstPause<<min(b.tries, 10), longestPause)
	b.tries++
	// Spread, so that workers do not come back all at once.
	return max(after, pause/2+rand.N(pause/2)), true
}

// sleep waits; false: ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
