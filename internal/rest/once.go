package rest

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/idempotency"
)

const idempotencyHeader = "Idempotency-Key"

// OnceHeader is the header of every operation that can be repeated safely.
type OnceHeader struct {
	Key idempotencyKey `header:"Idempotency-Key" doc:"A key of your choice that makes a retry safe: for 24 hours the same key and body get the first outcome again." example:"3f6c1a2e-submit-1"`
}

// once makes the key of a command. Its body is encoded anew, so that spacing and
// the order of members do not matter.
func (c *call) once(body any) (*idempotency.Key, error) {
	value := c.request.Header.Get(idempotencyHeader)
	if value == "" {
		return nil, nil
	}
	command, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return idempotency.New(c.request.Method+" "+c.request.URL.Path, value, command)
}

// begin puts the key of a command, if it has one, into the context, where the store finds
// it. Secrets of the outcome are kept for the caller's credential alone.
func (c *call) begin(ctx context.Context, body any) (context.Context, *idempotency.Once, error) {
	key, err := c.once(body)
	if err != nil || key == nil {
		return ctx, nil, err
	}
	by := httpx.CallerOf(ctx).Principal
	credential := cmp.Or(c.request.Header.Get("Authorization"), c.request.Header.Get("Cookie"))
	return idempotency.Begin(ctx, key, by.Org, by.Ref(), credential)
}

// replayed is the value of the header Idempotency-Replayed.
func replayed(yes bool) string {
	if yes {
		return "true"
	}
	return ""
}
