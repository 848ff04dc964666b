package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/text"
)

// Problem is why a remote cannot be used. Its text is for the admins of the relay.
type Problem struct {
	text string
	// Passing is set if the same request may succeed later.
	Passing bool
}

func (p *Problem) Error() string { return p.text }

func lasting(format string, args ...any) *Problem {
	return &Problem{text: fmt.Sprintf(format, args...)}
}

func passing(format string, args ...any) *Problem {
	return &Problem{text: fmt.Sprintf(format, args...), Passing: true}
}

// field returns the error of a request that named the remote.
func (p *Problem) field() error {
	return errs.InvalidFields(errs.Field{Path: errs.At("relay", "url"), Message: p.text})
}

// maxSaid limits what is passed on of a remote's error message, in characters.
const maxSaid = 500

// said returns what a remote said, as a harmless line. If the request had a credential, use the said of
// its authenticator.
func said(s string) string { return text.Clean(strings.TrimSpace(s), maxSaid) }

// statusError is a response whose status is an error, and whose body says nothing in the protocol.
type statusError struct {
	code   int
	target string // of a redirect
}

func (e *statusError) Error() string { return e.explain(nil) }

// explain is Error without the credential of the request.
func (e *statusError) explain(a *authenticator) string {
	if e.code/100 == 3 {
		return fmt.Sprintf("the remote agent redirects to %s; redirects are not followed: give that URL", a.said(e.target))
	}
	if e.code == http.StatusUnauthorized || e.code == http.StatusForbidden {
		return fmt.Sprintf("the remote agent refused the credential (HTTP %d); set another one", e.code)
	}
	return strings.TrimSpace(fmt.Sprintf("the remote agent responded with HTTP %d %s", e.code, http.StatusText(e.code)))
}

// passes reports whether a later request may succeed. A refused credential may be replaced.
func (e *statusError) passes() bool {
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return true
	}
	return e.code/100 == 5
}

// Errors of a transport.
var (
	errTooLarge = errors.New("the remote agent sent more than a task may hold")
	errTooMany  = fmt.Errorf("%w: the response has too many values, or they are nested too deep", errTooLarge)
	errSilent   = errors.New("the remote agent did not respond in time")
	errDropped  = errors.New("the remote agent ended the stream before the task was over")
	errGarbled  = errors.New("the response of the remote agent is not valid in A2A")
	errNoTask   = errors.New("the response of the remote agent does not name its task, or by an id that cannot be stored")
)

// verdict is what an error of a request to the remote means.
type verdict int

const (
	transient verdict = iota // the same request may succeed later
	refused                  // the remote understood the request and does not do it
	forgotten                // the remote does not know the task
	unable                   // the remote does not have the method
	faulty                   // the remote fails at this request, but works otherwise
	tooLarge
)

// judge returns what an error of a request means.
func judge(err error) verdict {
	var status *statusError
	switch {
	case errors.Is(err, errTooLarge):
		return tooLarge
	case errors.Is(err, errGarbled):
		return faulty
	case errors.As(err, &status):
		switch {
		case status.code == http.StatusInternalServerError, status.code == http.StatusNotImplemented:
			return faulty
		case status.passes():
			return transient
		}
		return refused
	case errors.Is(err, a2a.ErrUnauthenticated), errors.Is(err, a2a.ErrUnauthorized):
		return transient
	case errors.Is(err, a2a.ErrTaskNotFound):
		return forgotten
	case errors.Is(err, a2a.ErrUnsupportedOperation), errors.Is(err, a2a.ErrMethodNotFound):
		return unable
	}
	if _, ok := errors.AsType[*a2a.Error](err); ok {
		return refused
	}
	if unreached(err) {
		return transient
	}
	return faulty // the client could not understand the response
}

// unreached reports whether an error is one of the connection, not of the response.
func unreached(err error) bool {
	var request *url.Error
	var network net.Error
	var busy *busyError
	var credential *credentialError
	var full *errs.Error // of the memory for responses
	for _, target := range []any{&request, &network, &busy, &credential, &full} {
		if errors.As(err, target) {
			return true
		}
	}
	for _, known := range []error{
		errDropped, errSilent, io.EOF, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// responded reports whether the remote has responded to a request, although not to the point. If
// only some of its tasks get such responses, they must not keep the others waiting.
func responded(err error) bool {
	var status *statusError
	return errors.As(err, &status) || errors.Is(err, errDropped) || errors.Is(err, errSilent)
}

// explain returns an error of a request as a sentence for admins and senders. It does not repeat
// texts of this machine, which could name private hosts, nor the credential of the request, which
// remotes may repeat in their errors.
func explain(g *outbound.Guard, a *authenticator, err error) string {
	var status *statusError
	switch {
	case errors.As(err, &status):
		return status.explain(a)
	case errors.Is(err, errTooLarge), errors.Is(err, errSilent), errors.Is(err, errDropped), errors.Is(err, errNoTask),
		errors.Is(err, errGarbled):
		return sentence(err)
	case errors.Is(err, context.DeadlineExceeded):
		return errSilent.Error()
	}
	if e, ok := errors.AsType[*a2a.Error](err); ok {
		return "the remote agent responded with an error: " + a.said(e.Error())
	}
	if e, ok := errors.AsType[*credentialError](err); ok {
		return e.Error()
	}
	if !unreached(err) {
		return errGarbled.Error()
	}
	return "the remote agent cannot be reached: " + a.hide(g.Explain(err))
}

// sentence returns the innermost text of an error of this package.
func sentence(err error) string {
	for _, known := range []error{errTooMany, errTooLarge, errSilent, errDropped, errNoTask, errGarbled} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}
