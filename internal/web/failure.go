package web

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// formErrors are the errors of a form: of fields, by the first name of their paths, and of the
// whole form.
type formErrors struct {
	Whole   string
	Unshown []string // errors of fields that the page does not show
	fields  map[string]string
	shown   map[string]bool // fields whose errors the template has read
	reads   bool            // a GET: no form was sent
	Wait    int             // seconds until the next attempt
}

// newFormErrors splits an error of a service. reads reports whether the request was a GET.
func newFormErrors(err error, reads bool) formErrors {
	e := errs.As(err)
	out := formErrors{fields: map[string]string{}, shown: map[string]bool{}, reads: reads}
	for _, f := range e.Fields {
		name := f.Path.Head() // "scopes" for an error in scopes[0]
		if _, ok := out.fields[name]; !ok {
			out.fields[name] = f.Message
		}
	}
	if len(out.fields) == 0 {
		out.Whole = sentence(err)
	} else {
		out.sum()
	}
	out.Wait = int(math.Ceil(e.RetryAfter.Seconds()))
	return out
}

// sum sets the summary, and lists the errors that the template did not show. It runs again after
// the template was executed once.
func (e *formErrors) sum() {
	e.Whole = "Nothing was saved"
	if e.reads {
		e.Whole = "The page cannot be shown with these parameters"
	}
	if e.Unshown = e.rest(); len(e.Unshown) < len(e.fields) {
		e.Whole += ": see below"
	}
	e.Whole += "."
}

// rest lists the fields whose errors the template has not read yet.
func (e *formErrors) rest() []string {
	var out []string
	for name, message := range e.fields {
		if !e.shown[name] {
			out = append(out, capital(strings.ReplaceAll(name, "_", " "))+": "+message+".")
		}
	}
	slices.Sort(out)
	return out
}

// Field returns the error of a field, or "". The template that calls it must show the error.
func (e formErrors) Field(name string) string {
	message, wrong := e.fields[name]
	if !wrong {
		return ""
	}
	e.shown[name] = true
	return capital(message) + "."
}

// Other lists the errors of fields that the form does not show itself.
func (e formErrors) Other(shown ...string) []string {
	for _, name := range shown {
		e.Field(name)
	}
	out := e.rest()
	for name := range e.fields {
		e.shown[name] = true
	}
	return out
}

// failure is the view of an error page.
type failure struct {
	Status  int
	Message string
	Wait    int    // seconds
	Request string // request id, for internal errors
}

// failureTitles are the titles of error pages, by status.
var failureTitles = map[int]string{
	http.StatusBadRequest:            "The request could not be read",
	http.StatusForbidden:             "You may not do this",
	http.StatusNotFound:              "Page not found",
	http.StatusConflict:              "This is no longer possible",
	http.StatusPreconditionFailed:    "It changed while you read it",
	http.StatusRequestEntityTooLarge: "The form is too large",
	http.StatusUnprocessableEntity:   "Something is missing or wrong",
	http.StatusTooManyRequests:       "Too many requests",
	http.StatusServiceUnavailable:    "Temporarily unavailable",
}

// gone responds to a request that failed because its browser has closed the connection, or its side of
// it, and reports whether that was the reason.
func gone(w http.ResponseWriter, r *http.Request, err error) bool {
	ended := r.Context().Err()
	if ended == nil || !errors.Is(err, ended) {
		return false
	}
	w.WriteHeader(httpx.StatusCanceled)
	return true
}

// fail shows an error page inside the layout of the org.
func (v *visit) fail(err error) {
	if gone(v.w, v.r, err) {
		return
	}
	err = forPeople(err)
	e := errs.As(err)
	status := httpx.StatusOf(e.Kind)
	f := failure{Status: status, Message: sentence(err), Wait: retryAfter(v.w.Header(), err)}
	title, known := failureTitles[status]
	switch {
	case e.Kind == errs.Unavailable:
		v.Logger.WarnContext(v.r.Context(), "page unavailable", "error", err)
	case status >= http.StatusInternalServerError:
		id := httpx.RequestID(v.r.Context())
		v.Logger.ErrorContext(v.r.Context(), "page failed", "error", err, "request_id", id)
		f.Message, f.Request = "Something went wrong on the server, and nothing was changed. Try again in a moment.", id
		title, known = "Something went wrong", true
	}
	if !known {
		title = "That did not work"
	}
	if err := render(v, status, "failure", title, f); err != nil {
		v.failed(v.w, v.r, err) // the menu failed, too
	}
}

// retryAfter sets the Retry-After header, and returns the number of seconds; 0 means at once.
func retryAfter(h http.Header, err error) int {
	wait := int(math.Ceil(errs.As(err).RetryAfter.Seconds()))
	if wait > 0 {
		h.Set("Retry-After", strconv.Itoa(wait))
	}
	return wait
}

// refuse shows an error that occurred before a handler ran.
func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	m, _ := r.Context().Value(visitKey{}).(*identity.Member)
	if m == nil {
		p.failed(w, r, err)
		return
	}
	v := &visit{Pages: p, w: w, r: r, caller: httpx.CallerOf(r.Context()), member: m}
	v.fail(err)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func sortFields(fields []keptField) {
	slices.SortStableFunc(fields, func(a, b keptField) int { return strings.Compare(a.Name, b.Name) })
}
