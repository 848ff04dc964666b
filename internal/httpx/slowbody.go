package httpx

import (
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// slowAfter is how long a body may take until its caller is authenticated again.
const slowAfter = time.Second

// slowBody is the body of an authenticated caller. If it takes long to arrive, the caller is
// authenticated again before the rest of it is read: otherwise a client that sends slowly could act long
// after its rights ended.
type slowBody struct {
	io.ReadCloser
	x       *exchange
	request *http.Request
	find    finder // of pages; nil: the API
	checked time.Time
}

// finder returns the signed-in user of a request, or nil, and the request to continue with.
type finder func(*http.Request) (*identity.Caller, *http.Request, error)

// watchBody makes the body of the request a slowBody.
func (x *exchange) watchBody(r *http.Request, find finder) {
	if r.ContentLength == 0 || x.caller == nil {
		return
	}
	x.slow = slowBody{ReadCloser: r.Body, x: x, request: r, find: find, checked: x.start}
	r.Body = &x.slow
}

// errRightsChanged is the error of a request whose caller got other rights while it was received.
var errRightsChanged = errs.New(errs.Unauthenticated, "auth.changed",
	"the rights of the caller changed while the request was received; send it again")

// Read implements io.Reader.
func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if now := b.x.router.now(); now.Sub(b.checked) > slowAfter {
		b.checked = now
		if refused := b.recheck(); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// recheck returns an error if the caller may no longer do what it could when the request began. A store
// that is unavailable for a moment refuses nothing: the write would fail, too.
func (b *slowBody) recheck() error {
	caller, err := b.again()
	if err != nil {
		if errs.KindOf(err) == errs.Unauthenticated {
			return err
		}
		return nil
	}
	if old := b.x.caller; caller == nil || caller.Principal != old.Principal || caller.KeyID != old.KeyID ||
		!slices.Equal(caller.Scopes, old.Scopes) {
		return errRightsChanged
	}
	return nil
}

func (b *slowBody) again() (*identity.Caller, error) {
	if b.find != nil {
		caller, _, err := b.find(b.request)
		return caller, err
	}
	return b.x.router.Recheck(b.x, b.request)
}
