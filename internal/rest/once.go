package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/task"
)

const idempotencyHeader = "Idempotency-Key"

// OnceHeader is embedded by the inputs of operations that accept an Idempotency-Key.
type OnceHeader struct {
	Key idempotencyKey `header:"Idempotency-Key" example:"3f6c1a2e-submit-1"`
}

// ReportOnceHeader is OnceHeader for worker reports, whose outcomes are kept for less time.
type ReportOnceHeader struct {
	Key reportKey `header:"Idempotency-Key" example:"3f6c1a2e-report-1"`
}

// once builds the idempotency key of a command. The body is re-encoded, so that whitespace and
// the order of members do not matter.
func (c *call) once(body any) (*idempotency.Key, error) {
	value := c.request.Header.Get(idempotencyHeader)
	if value == "" {
		return nil, nil
	}
	sum, err := fingerprint(body)
	if err != nil {
		return nil, err
	}
	k, err := idempotency.NewOf(c.request.Method+" "+c.request.URL.Path, value, sum)
	if err != nil {
		for _, f := range errs.As(err).Fields {
			err = httpx.InvalidParts(httpx.Part{In: httpx.Header, Name: idempotencyHeader, Message: f.Message})
		}
		return nil, err
	}
	if _, ok := body.(*WorkReport); ok {
		k.Keep = reportKept
	}
	return k, nil
}

// reportKept is how long the outcome of a report is kept. It exceeds the longest lease: workers
// send many reports, and a worker whose lease is over has nothing to repeat.
const reportKept = 2 * task.MaxLease

// hashed is a body that is too large to be re-encoded.
type hashed interface{ hashInto(h hash.Hash) error }

// fingerprint returns the SHA-256 of a body.
func fingerprint(body any) (sum [32]byte, err error) {
	h := sha256.New()
	if b, ok := body.(hashed); ok {
		err = b.hashInto(h)
	} else {
		err = json.MarshalWrite(h, body)
	}
	h.Sum(sum[:0])
	return sum, err
}

// hashInto hashes the message and the artifacts as they were sent, because they can be megabytes.
func (b *WorkReport) hashInto(h hash.Hash) error {
	small := *b
	small.Message, small.Artifacts = nil, nil
	if err := json.MarshalWrite(h, small); err != nil {
		return err
	}
	for _, text := range [][]byte{b.Message, b.Artifacts} {
		if _, err := fmt.Fprintf(h, "\n%d\n", len(text)); err != nil {
			return err
		}
		_, _ = h.Write(text) // never fails
	}
	return nil
}

// begin stores the idempotency key of a command, if there is one, in the context for the store.
// Only the caller's credential can read secrets of the outcome again.
func (c *call) begin(ctx context.Context, body any) (context.Context, *idempotency.Once, error) {
	key, err := c.once(body)
	if err != nil || key == nil {
		return ctx, nil, err
	}
	by := httpx.CallerOf(ctx).Principal
	credential := cmp.Or(httpx.BearerOf(c.request), c.request.Header.Get("Cookie"))
	return idempotency.Begin(ctx, key, by.Org, by.Ref(), credential)
}

// replayed returns the value of the Idempotency-Replayed header.
func replayed(yes bool) string {
	if yes {
		return "true"
	}
	return ""
}
