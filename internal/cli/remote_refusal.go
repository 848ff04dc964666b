package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

// explain turns an error of the client into one that says what to do on a command line.
func explain(err error) error {
	var refused *client.Error
	var lost *client.ConnectionError
	switch {
	case errors.As(err, &refused):
		return &refusal{refused}
	case errors.As(err, &lost) && lost.NotSent():
		return fmt.Errorf("%w; is the server running, and is --server right?", lost)
	case errors.As(err, &lost):
		return lost
	}
	return err
}

// refusal is a refusal by the server in lines: the sentence, each field, what would be
// accepted, and the id to quote.
type refusal struct{ cause *client.Error }

// Unwrap returns the refusal as the client has it.
func (r *refusal) Unwrap() error { return r.cause }

// Error implements error.
func (r *refusal) Error() string {
	e := r.cause
	var b strings.Builder
	switch {
	case e.Detail == "":
		fmt.Fprintf(&b, "the server answered %d %s", e.Status, http.StatusText(e.Status))
		if e.Location != "" {
			b.WriteString(" to " + e.Location + "; use that address as --server if it is right")
		}
	case len(e.Fields) > 1 && e.RPCCode == 0:
		// The detail would say of all fields in one line what follows line by line.
		b.WriteString("the server did not accept these fields:")
	default:
		b.WriteString(e.Detail)
	}
	for _, f := range e.Fields {
		if len(e.Fields) == 1 && strings.Contains(e.Detail, f.Detail) {
			break
		}
		fmt.Fprintf(&b, "\n  %s: %s", f.Name(), f.Detail)
	}
	if len(e.Allowed) > 0 {
		fmt.Fprintf(&b, "\n  allowed: %s", strings.Join(e.Allowed, ", "))
	}
	switch {
	case e.Status == http.StatusOK:
		fmt.Fprintf(&b, "\n  code: %d", e.RPCCode)
	case e.Code != "":
		fmt.Fprintf(&b, "\n  code: %s", e.Code)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, "\n  request id: %s", e.RequestID)
	}
	return b.String()
}
