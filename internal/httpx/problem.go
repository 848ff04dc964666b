package httpx

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Problem is the body of every error response: RFC 9457 with a stable code, the request id, and one
// entry for every part of the request that broke a rule.
type Problem struct {
	Type      string         `json:"type" doc:"Always about:blank: the code says more." example:"about:blank"`
	Title     string         `json:"title" doc:"The name of the status." example:"Unprocessable Entity"`
	Status    int            `json:"status" doc:"The HTTP status." example:"422"`
	Detail    string         `json:"detail" doc:"What was wrong and what to do." example:"limit must be an integer between 1 and 100"`
	Code      string         `json:"code" doc:"A stable name to switch on." example:"request.invalid"`
	RequestID string         `json:"request_id" doc:"The id of the request in the server's log." example:"K2J7QX4N5B3A-1f"`
	Errors    []ProblemField `json:"errors,omitzero" nullable:"false" doc:"Every part of the request that broke a rule."`
	Allowed   []string       `json:"allowed,omitzero" nullable:"false" doc:"On 409: what the current state does allow."`
	Scope     string         `json:"scope,omitzero" doc:"On 403: the missing scope, or several; one is enough." example:"svc:admin:admin"`

	headers http.Header
}

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

// StatusCanceled is what nginx calls "client closed request". No client reads the response; the
// status keeps such requests out of the server error metrics.
const StatusCanceled = 499

// statuses maps kinds to HTTP statuses.
var statuses = [...]int{
	errs.Internal:        http.StatusInternalServerError,
	errs.Malformed:       http.StatusBadRequest,
	errs.Invalid:         http.StatusUnprocessableEntity,
	errs.Unauthenticated: http.StatusUnauthorized,
	errs.Forbidden:       http.StatusForbidden,
	errs.NotFound:        http.StatusNotFound,
	errs.Conflict:        http.StatusConflict,
	errs.Stale:           http.StatusPreconditionFailed,
	errs.TooLarge:        http.StatusRequestEntityTooLarge,
	errs.Unsupported:     http.StatusUnsupportedMediaType,
	errs.RateLimited:     http.StatusTooManyRequests,
	errs.Unavailable:     http.StatusServiceUnavailable,
}

// StatusOf returns the HTTP status of a kind.
func StatusOf(k errs.Kind) int {
	if int(k) < len(statuses) {
		return statuses[k]
	}
	return http.StatusInternalServerError
}

// internal is what a caller sees of a server error.
var internal = errs.As(errors.New("unclassified"))

// NewProblem explains err to the caller of the request with the given context. The cause of a
// server error is kept for the log and not shown.
func NewProblem(ctx context.Context, err error) *Problem {
	e := classify(ctx, err)
	status := StatusOf(e.Kind)
	if e.Code == codeCanceled {
		status = StatusCanceled
	}
	if x := exchangeOf(ctx); x != nil {
		if reason, busy := busyCodes[e.Code]; busy {
			x.busy = append(x.busy, reason)
		} else if status >= http.StatusInternalServerError {
			x.cause = err
		}
	}
	p := &Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: e.Explain(inBody), Code: e.Code, RequestID: RequestID(ctx),
		Allowed: e.Allowed, Scope: e.Scope, headers: headersFor(e),
	}
	p.nameMetadata(ctx)
	if status == http.StatusInternalServerError {
		p.Detail, p.Code = internal.Message, internal.Code
	}
	p.Errors = problemFields(err, e)
	return p
}

// busyCodes are the codes with which handlers refuse requests to protect others. They are counted
// like the router's own refusals.
var busyCodes = map[string]shedReason{"server.busy": shedMemory, "search.busy": shedSearch}

const codeCanceled = "request.canceled"

// classify finds the Error in err. The end of a context is checked first: it takes precedence over
// the errors that other layers made of it.
func classify(ctx context.Context, err error) *errs.Error {
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return errs.Wrap(err, errs.Malformed, codeCanceled, "the client closed the request")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e := errs.Wrap(err, errs.Unavailable, "store.unavailable",
			"the request could not be finished in time; try again")
		e.RetryAfter = time.Second
		return e
	}
	return errs.As(err)
}

const challenge = `Bearer realm="parley"`

func headersFor(e *errs.Error) http.Header {
	h := http.Header{}
	switch e.Kind {
	case errs.Unauthenticated:
		h["Www-Authenticate"] = []string{challenge}
		if e.Code != "auth.missing" {
			h["Www-Authenticate"] = []string{challenge + `, error="invalid_token"`}
		}
	case errs.Forbidden:
		if e.Scope != "" {
			h["Www-Authenticate"] = []string{challenge + `, error="insufficient_scope", scope="` + e.Scope + `"`}
		}
	case errs.RateLimited, errs.Unavailable:
		h["Retry-After"] = []string{strconv.FormatInt(retrySeconds(e.RetryAfter), 10)}
	}
	return h
}

// nameMetadata adds the URL of the resource metadata to a challenge, which tells clients where to
// get an access token (RFC 9728, section 5.1).
func (p *Problem) nameMetadata(ctx context.Context) {
	challenge, x := p.headers["Www-Authenticate"], exchangeOf(ctx)
	if len(challenge) == 0 || x == nil || x.metadata == "" {
		return
	}
	p.headers["Www-Authenticate"] = []string{challenge[0] + MetadataParameter + `"` + x.metadata + `"`}
}

// MetadataParameter begins the last parameter of a challenge, the URL of the metadata.
const MetadataParameter = ", resource_metadata="

// retrySeconds rounds up: a client that waits as told must not be too early.
func retrySeconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus and GetHeaders let frameworks write a Problem.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that belong to the response.
func (p *Problem) GetHeaders() http.Header { return p.headers }

// ContentType replaces the media type that a framework negotiated.
func (p *Problem) ContentType(string) string { return ProblemType }

// Write writes the problem as the response.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	// Remove headers that described the intended response.
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Link", "Location"} {
		delete(h, name)
	}
	for name, v := range p.headers {
		h[name] = v
	}
	h["Content-Type"] = []string{ProblemType}
	h["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(p.Status)
	_ = WriteJSON(w, p) // the client may be gone
}

// WriteError writes err as a problem, or as a page for people who opened a URL in a browser; see
// Router.ShowErrors.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	p := NewProblem(r.Context(), err)
	if x := exchangeOf(r.Context()); x != nil && x.router != nil {
		x.router.refuse(w, r, p)
		return
	}
	p.Write(w)
}

// methodNotAllowed has no Kind: only HTTP knows methods.
func methodNotAllowed(ctx context.Context, allowed []string) *Problem {
	p := NewProblem(ctx, errs.New(errs.Malformed, "request.method_not_allowed",
		"this path allows %s only", strings.Join(allowed, ", ")))
	p.Status, p.Title = http.StatusMethodNotAllowed, http.StatusText(http.StatusMethodNotAllowed)
	p.headers.Set("Allow", strings.Join(allowed, ", "))
	return p
}

// Explain is like NewProblem, for a transport with its own error bodies. It also sets the headers
// that belong to the refusal.
func Explain(w http.ResponseWriter, r *http.Request, err error) *Problem {
	p := NewProblem(r.Context(), err)
	for name, v := range p.headers {
		w.Header()[name] = v
	}
	return p
}
