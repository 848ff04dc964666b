package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

// rpcTaskNotFound is the JSON-RPC code for a task that does not exist.
const rpcTaskNotFound = -32001

// explain turns an error of the client into one that says what to do on a command line.
func explain(err error) error {
	var refused *client.Error
	var lost *client.ConnectionError
	switch {
	case errors.As(err, &refused):
		return &refusal{cause: refused}
	case errors.As(err, &lost) && lost.Permanent():
		return fmt.Errorf("%w; is --server right?", lost)
	case errors.As(err, &lost) && lost.NotSent():
		return fmt.Errorf("%w; is the server running, and is --server right?", lost)
	case errors.As(err, &lost):
		return lost
	}
	return err
}

// explain names what was not found or not accepted, which the server keeps to itself so as
// not to tell strangers what exists.
func (r *remote) explain(e *env, s subject, err error) error {
	err = explain(err)
	var refused *refusal
	if !errors.As(err, &refused) {
		return err
	}
	switch c := refused.cause; {
	case c.Detail == "" && c.Status == http.StatusBadRequest && strings.HasPrefix(r.Server, "http://"):
		refused.says = r.Server + " responded with 400 Bad Request, but not as Parley does; does it need https://?"
	case c.Detail == "": // not Parley's
	case c.Status == http.StatusNotFound:
		refused.says = r.missing(e, s)
	case c.RPCCode == rpcTaskNotFound && s.kind == "task":
		refused.says = missing(s.kind, *s.id, "among those that you sent, on "+r.Server, e.again("server", "org"))
	case c.Status == http.StatusUnauthorized && r.Key != "":
		refused.says = fmt.Sprintf("%s does not accept the API key %s: %s; check PARLEY_KEY or --key, or run %q",
			r.Server, keyName(r.Key), c.Detail, "parley login --server "+r.Server)
	}
	return refused
}

// missing says what a 404 is about. The server returns the same 404 for a foreign org and a
// missing resource, but it tells which org the credentials belong to.
func (r *remote) missing(e *env, s subject) string {
	if s.agent != "" {
		return fmt.Sprintf("agent %q not found on %s, or you may not call it; run %q", s.agent, r.Server, "parley agent card"+e.again("server"))
	}
	if r.named != "" {
		me, err := r.Me(e.ctx)
		switch {
		case err == nil && me.Org != r.named:
			return r.otherOrg(e, me)
		case err != nil || s.kind == "":
			return fmt.Sprintf("org %q not found on %s; run %q", r.named, r.Server, "parley whoami"+e.again("server"))
		}
	}
	if s.kind == "" {
		return "not found on " + r.Server
	}
	return missing(s.kind, *s.id, r.in(e), e.again("server", "org"))
}

func (r *remote) otherOrg(e *env, me *client.Me) string {
	return fmt.Sprintf("org %q not found on %s; you are %s of org %q, see %q",
		r.named, r.Server, me.Principal, me.Org, "parley whoami"+e.again("server"))
}

// missingPrincipal names the principal that a field of the request has and the org has not.
func (r *remote) missingPrincipal(e *env, err error, field, ref string) error {
	var refused *refusal
	if errors.As(err, &refused) && len(refused.cause.Fields) == 1 && refused.cause.Fields[0].Name() == field {
		s := aboutMember(ref)
		refused.says = missing(s.kind, *s.id, r.in(e), e.again("server", "org")) + ": " + refused.cause.Detail
	}
	return err
}

// keyName shows enough of a key to recognize it, and never one that is short enough to
// guess the rest of.
func keyName(key string) string {
	const shown = 12 // as the prefix in parley key list
	if len(key) < 2*shown {
		return "that was given"
	}
	return fmt.Sprintf("%q", key[:shown]+"…")
}

// refusal is a refusal by the server in lines: the sentence, each field, what would be
// accepted, and the id to quote.
type refusal struct {
	cause *client.Error
	says  string // replaces the server's sentence
}

// Unwrap returns the refusal as the client has it.
func (r *refusal) Unwrap() error { return r.cause }

// Error implements error.
func (r *refusal) Error() string {
	e := r.cause
	var b strings.Builder
	switch {
	case r.says != "":
		b.WriteString(r.says)
	case e.Detail == "":
		fmt.Fprintf(&b, "the server responded with %d %s", e.Status, http.StatusText(e.Status))
		if e.Location != "" {
			b.WriteString(" to " + e.Location + "; if that is the server, name it with --server")
		}
	case len(e.Fields) > 1 && e.RPCCode == 0:
		// The detail repeats in one line what follows field by field.
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
