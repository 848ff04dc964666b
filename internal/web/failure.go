package web

import (
	"context"
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

// formErrors are what was wrong with a form: of fields, by the first name of their paths, and
// of the whole.
type formErrors struct {
	Whole   string
	Unshown []string // what was wrong with fields that the page shows nothing beside
	fields  map[string]string
	shown   map[string]bool // fields that the template has asked for
	reads   bool            // the page was asked for, and no form was sent
	Wait    int             // seconds until another try makes sense; 0: at once
}

// newFormErrors takes an error of a service apart. reads: nothing was to be saved.
func newFormErrors(err error, reads bool) formErrors {
	e := errs.As(err)
	out := formErrors{fields: map[string]string{}, shown: map[string]bool{}, reads: reads}
	for _, f := range e.Fields {
		name := f.Path.Head() // "scopes" for one of the scopes
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

// sum says what became of the whole, and lists the fields that the template did not ask for. It
// is called again after the template has run once.
func (e *formErrors) sum() {
	e.Whole = "Nothing was saved"
	if e.reads {
		e.Whole = "This cannot be shown as it was asked for"
	}
	if e.Unshown = e.rest(); len(e.Unshown) < len(e.fields) {
		e.Whole += ": see below"
	}
	e.Whole += "."
}

// rest lists the fields that the template has not asked for yet.
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

// Field is what was wrong with a field; empty: nothing. Who asks shows it.
func (e formErrors) Field(name string) string {
	message, wrong := e.fields[name]
	if !wrong {
		return ""
	}
	e.shown[name] = true
	return capital(message) + "."
}

// Other lists problems of fields that the form does not show itself.
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

// failure is the view of a page that says what went wrong.
type failure struct {
	Status  int
	Message string
	Wait    int    // seconds
	Request string // its id, for failures of ours
}

// titles of failures, by status.
var failureTitles = map[int]string{
	http.StatusBadRequest:            "This could not be read",
	http.StatusForbidden:             "You may not do this",
	http.StatusNotFound:              "There is nothing here",
	http.StatusConflict:              "That is not possible any more",
	http.StatusPreconditionFailed:    "It changed while you read it",
	http.StatusRequestEntityTooLarge: "That is too much",
	http.StatusUnprocessableEntity:   "Something is missing or wrong",
	http.StatusTooManyRequests:       "Too fast",
	http.StatusServiceUnavailable:    "Not now",
}

// fail answers with the page of an error, inside the org's layout.
func (v *visit) fail(err error) {
	if v.r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // the browser went away while it waited
	}
	err = forPeople(err)
	e := errs.As(err)
	status := httpx.StatusOf(e.Kind)
	f := failure{Status: status, Message: sentence(err), Wait: retryAfter(v.w.Header(), err)}
	title, known := failureTitles[status]
	switch {
	case e.Kind == errs.Unavailable:
		v.Logger.WarnContext(v.r.Context(), "a page is not available", "error", err)
	case status >= http.StatusInternalServerError:
		v.Logger.ErrorContext(v.r.Context(), "a page failed", "error", err, "request_id", httpx.RequestID(v.r.Context()))
		f.Message, f.Request = "Something went wrong here, and nothing was changed. Try again in a moment.", httpx.RequestID(v.r.Context())
		title, known = "Something went wrong", true
	}
	if !known {
		title = "That did not work"
	}
	if err := render(v, status, "failure", title, f); err != nil {
		v.failed(v.w, v.r, err) // not even the menu can be shown
	}
}

// retryAfter has the response say when another try makes sense: in how many seconds; 0: at once.
func retryAfter(h http.Header, err error) int {
	wait := int(math.Ceil(errs.As(err).RetryAfter.Seconds()))
	if wait > 0 {
		h.Set("Retry-After", strconv.Itoa(wait))
	}
	return wait
}

// refuse answers what was refused before a handler ran.
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
