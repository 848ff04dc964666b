package httpx

import (
	"context"
	"io"
	"net/http"

	"github.com/parley-dev/parley/internal/budget"
)

// largeBody is the size from which on a request's body is counted. The number of requests bounds
// smaller ones.
const largeBody = 32 << 10

// maxDeclared is the most that a declared length counts. No handler reads more.
const maxDeclared = 8 << 20

// holdBody takes memory for the request's body, and for what it is decoded to, before it is read. A
// client that sends slowly must not hold more than its share.
func (x *exchange) holdBody(r *http.Request) error {
	switch n := r.ContentLength; {
	case n < 0:
		x.body = &countedBody{ReadCloser: r.Body, x: x, free: largeBody}
		r.Body = x.body
	case n > largeBody:
		return x.account.Hold(x, 2*min(n, maxDeclared))
	}
	return nil
}

// countedBody is a body of unknown length, which is counted while it is read.
type countedBody struct {
	io.ReadCloser
	x    *exchange
	free int64 // bytes that may be read before more memory is taken
}

const bodyPortion = 128 << 10

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for b.free -= int64(n); b.free < 0; b.free += bodyPortion {
		if err := b.x.account.Hold(b.x, 2*bodyPortion); err != nil {
			return n, err
		}
	}
	return n, err
}

// ExpectBody takes memory for n bytes of a body whose length HTTP does not declare, for a protocol
// that declares it in the body itself.
func ExpectBody(ctx context.Context, n int64) error {
	x := exchangeOf(ctx)
	if x == nil || n <= largeBody {
		return nil
	}
	if err := x.account.Hold(x, 2*n); err != nil {
		return err
	}
	if b, ok := x.body.(*countedBody); ok {
		b.free += n
	}
	return nil
}

// ReleaseMemory gives back all that the request holds, for a handler that no longer needs its body
// and the response so far, such as a stream.
func ReleaseMemory(ctx context.Context) { budget.From(ctx).Release() }
