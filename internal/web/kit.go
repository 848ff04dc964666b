package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
)

// The page kit. A handler of the dashboard gets a visit, calls the same services as package rest,
// and returns an error or renders a page:
//
//	session → member of the org in the URL → caller → Access → service → view model → template
//
// A GET changes nothing. A POST redirects to a page that can be reloaded, or shows its form again
// with errors. Every form has a one-time token; see visit.once.

// orgPrefix is the path of the pages of an org.
const orgPrefix = "/orgs/{org}"

// maxPageForm limits the size of dashboard forms: two texts of 20,000 characters, escaped.
const maxPageForm = 1 << 20

// visit is a request of a signed-in member to a page of an org.
type visit struct {
	*Pages
	w      http.ResponseWriter
	r      *http.Request
	caller *identity.Caller
	member *identity.Member
	secret bool  // the response must not be stored
	head   int64 // number of the org's last event before anything was read

	counted map[proposal.Status]int64 // cached number of proposals by status
}

// handler serves a page of an org, or carries out a form. It has written the response if it
// returns nil.
type handler func(v *visit) error

// orgPages adds pages below orgPrefix. Patterns have the form "GET /proposals".
func (p *Pages) orgPages(routes map[string]handler) {
	for pattern, h := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		p.router.HandlePeople(method+" "+orgPrefix+path, p.visitor, p.refuse, p.serve(h))
	}
}

// visitKey is the context key of the signed-in member.
type visitKey struct{}

var errOtherSite = errs.New(errs.Forbidden, "auth.other_site",
	"this form was sent from another site, so nothing was done")

// visitor returns the signed-in member of the org in the URL.
func (p *Pages) visitor(r *http.Request) (*identity.Caller, *http.Request, error) {
	return p.visitorAs(r, func(r *http.Request) (*identity.Member, error) {
		m, err := p.MemberIn(r, r.PathValue("org"))
		if err != nil || m != nil {
			return m, err
		}
		in, err := p.SignedIn(r)
		if err == nil && in != nil {
			err = errs.ErrNotFound // signed in, but not to this org
		}
		return nil, err
	})
}

// visitorAs returns the signed-in member; find chooses the membership of the session.
func (p *Pages) visitorAs(
	r *http.Request, find func(*http.Request) (*identity.Member, error),
) (*identity.Caller, *http.Request, error) {
	if err := p.forms.Check(r); err != nil {
		return nil, r, errOtherSite
	}
	cookie, err := r.Cookie(p.sessions.Cookie.Name)
	if err != nil || cookie.Value == "" {
		return nil, r, nil //nolint:nilerr // not signed in
	}
	ctx, err := p.sessions.Load(context.WithValue(r.Context(), loadedKey{}, new(string)), cookie.Value)
	if err != nil {
		return nil, r, err
	}
	r = r.WithContext(ctx)
	m, err := find(r)
	if err != nil || m == nil {
		return nil, r, err
	}
	return sessionCaller(m, cookie.Value), r.WithContext(context.WithValue(ctx, visitKey{}, m)), nil
}

// sessionCaller returns a signed-in member as a caller. The org is part of the id, so that the
// audit logs of two orgs cannot be correlated.
func sessionCaller(m *identity.Member, token string) *identity.Caller {
	sum := sha256.Sum256([]byte("session:" + m.Org + ":" + token))
	return &identity.Caller{
		Principal: m.Principal, KeyID: identity.SessionID(hex.EncodeToString(sum[:6])), Scopes: oauth.Entitled(*m),
	}
}

// serve runs a handler, and shows its error.
func (p *Pages) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, _ := r.Context().Value(visitKey{}).(*identity.Member)
		v := &visit{Pages: p, w: w, r: r, caller: httpx.CallerOf(r.Context()), member: m}
		if m == nil {
			p.signedOut(w, r)
			return
		}
		err := httpx.CheckLength(r, maxPageForm)
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxPageForm)
			err = v.parse()
		}
		if err == nil {
			err = v.readHead()
		}
		if err == nil {
			err = h(v)
		}
		if err != nil {
			v.fail(err)
		}
	})
}

// parse parses the form of a POST.
func (v *visit) parse() error {
	if v.r.Method != http.MethodPost {
		return nil
	}
	err := v.r.ParseForm()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return errs.New(errs.TooLarge, "request.too_large", "the form is too large, so nothing was saved; shorten the text")
	case err != nil:
		return errs.Wrap(err, errs.Malformed, "request.malformed", "the form could not be read, so nothing was saved")
	}
	return nil
}

// signedOut handles a request without a session. A page redirects to the sign-in page and back. A
// form is shown again with its fields, to be sent after signing in.
func (p *Pages) signedOut(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if r.Header.Get("HX-Request") != "" || r.Header.Get(liveHeader) != "" {
			// A script requested a part of a page. It must not insert a sign-in page.
			p.Problem(w, r, http.StatusUnauthorized, "You are signed out.")
			return
		}
		p.SignIn(w, r, r.URL.RequestURI())
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxPageForm)
	if err := r.ParseForm(); err != nil {
		p.failed(w, r, errs.Wrap(err, errs.Malformed, "request.malformed",
			"the form could not be read, so nothing was saved"))
		return
	}
	v := view{Title: "You are signed out", Action: r.URL.RequestURI()}
	for _, name := range secretFields {
		r.PostForm.Del(name) // must not appear in a page
	}
	for name, values := range r.PostForm {
		for _, value := range values {
			v.Fields = append(v.Fields, keptField{Name: name, Value: value, Hidden: name == onceField || len(value) < 60})
		}
	}
	sortFields(v.Fields)
	p.show(w, r, http.StatusUnauthorized, "signed out", v, "")
}

// may reports whether the member may do the action, so that pages offer only what is allowed.
func (v *visit) may(action identity.Action) bool {
	_, err := v.access(action)
	return err == nil
}

// access authorizes the member for an action.
func (v *visit) access(action identity.Action) (identity.Access, error) {
	a, err := identity.Authorize(v.caller, v.member.Org, action)
	return a, onlyAdmins(action, err)
}

// base returns the path of the org.
func (v *visit) base() string { return "/orgs/" + v.member.Org }

// value returns a form field without surrounding white space.
func (v *visit) value(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }

// text returns a multi-line form field with CR LF converted to LF.
func (v *visit) text(name string) string {
	return strings.TrimSpace(strings.ReplaceAll(v.r.PostFormValue(name), "\r\n", "\n"))
}

// onceField is the hidden field with the token of a form. The token is the idempotency key of the
// command, so that a form that is sent twice (double click, reload, back button) runs once.
const onceField = "once"

// secretFields are the fields with passwords and credentials. They are never stored: neither in the
// fingerprint of a form nor in a page that repeats a form.
var secretFields = []string{"password", "old", "repeat", "confirm", "bearer_token", "header_value", "client_secret"}

// once returns the idempotency key of the form.
func (v *visit) once() (*idempotency.Key, error) {
	token := v.r.PostFormValue(onceField)
	if token == "" {
		return nil, nil
	}
	fields := url.Values{}
	for name, values := range v.r.PostForm {
		if name != onceField && !slices.Contains(secretFields, name) {
			fields[name] = values
		}
	}
	return idempotency.New(v.r.Method+" "+v.r.URL.Path, token, []byte(fields.Encode()))
}

// begin stores the key of the form in the context, for services that read it there. Secrets of
// the outcome are shown again only to the same session.
func (v *visit) begin() (context.Context, *idempotency.Once, error) {
	ctx := v.r.Context()
	key, err := v.once()
	if err != nil || key == nil {
		return ctx, nil, err
	}
	cookie, err := v.r.Cookie(v.sessions.Cookie.Name)
	if err != nil {
		return ctx, nil, identity.ErrMissing
	}
	return idempotency.Begin(ctx, key, v.member.Org, v.member.Ref(), cookie.Value)
}

// done redirects to a page that can be reloaded, and shows the message there.
func (v *visit) done(to, message string) error {
	if message != "" {
		v.sessions.Put(v.r.Context(), keyFlash, message)
		if err := v.commit(); err != nil {
			return err
		}
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// back redirects to the page of the form if it belongs to this org, otherwise to the given page.
func (v *visit) back(otherwise, message string) error {
	to := v.r.PostFormValue("back")
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" ||
		!strings.HasPrefix(to, v.base()+"/") || strings.ContainsAny(to, "\\\r\n") {
		to = otherwise
	}
	return v.done(to, message)
}

const (
	keyFlash   = "flash"
	keyTouched = "touched"
	touchEvery = 5 * time.Minute
)

// result returns the result of the last form. A script that requests the page again leaves it to
// the next page.
func (v *visit) result() (notice, error) {
	if v.live() {
		return "", nil
	}
	done, err := v.flash()
	return notice(done), err
}

// flash returns the message of the last form, once.
func (v *visit) flash() (string, error) {
	ctx := v.r.Context()
	message := v.sessions.PopString(ctx, keyFlash)
	old := v.Now().Unix()-v.sessions.GetInt64(ctx, keyTouched) > int64(touchEvery/time.Second)
	if message == "" && !old {
		return "", nil // the common case, without a write
	}
	return message, v.commit()
}

// commit saves the session, which extends it by another idle period.
func (v *visit) commit() error {
	ctx := v.r.Context()
	v.sessions.Put(ctx, keyTouched, v.Now().Unix())
	token, expiry, err := v.sessions.Commit(ctx)
	if err != nil {
		return err
	}
	v.sessions.WriteSessionCookie(ctx, v.w, token, expiry)
	return nil
}

// page is a page of an org: the layout and the content.
type page[T any] struct {
	Title  string
	Base   string // path of the org
	Path   string // path of this page with its query
	Org    identity.Org
	Me     *identity.Member
	Nav    nav
	Done   notice    // result of the last form
	Live   *liveView // nil: the page does not follow the org
	Errors formErrors
	Body   T
}

// render shows a page of an org.
func render[T any](v *visit, status int, name, title string, body T) error {
	return renderForm(v, status, name, title, body, nil)
}

// renderForm shows a page again after its form failed, with the errors. The status is that of the
// error, if there is one. Errors that the user cannot fix in the form are returned.
func renderForm[T any](v *visit, status int, name, title string, body T, problem error) error {
	pg := page[T]{
		Title: title, Base: v.base(), Path: v.r.URL.RequestURI(), Me: v.member, Body: body,
	}
	if problem = forPeople(problem); problem != nil {
		if !isFormsFault(problem) {
			return problem
		}
		pg.Errors = newFormErrors(problem, v.r.Method != http.MethodPost)
		status = httpx.StatusOf(errs.KindOf(problem))
		retryAfter(v.w.Header(), problem)
	}
	var err error
	if pg.Done, err = v.result(); err != nil {
		return err
	}
	pg.Live = v.liveView(status)
	if pg.Org, pg.Nav, err = v.nav(); err != nil {
		return err
	}
	if len(pg.Errors.fields) > 0 {
		t, err := v.templates.page(name)
		if err != nil {
			return err
		}
		// Errors of fields that the template does not show go to the top of the page. They are
		// known only after rendering.
		if err := t.Execute(io.Discard, pg); err != nil {
			return err
		}
		pg.Errors.sum()
	}
	return v.write(status, name, pg)
}

// isFormsFault reports whether the user can fix an error in the form.
func isFormsFault(err error) bool {
	switch errs.KindOf(err) {
	case errs.Invalid, errs.Conflict, errs.Stale, errs.RateLimited, errs.Forbidden:
		return true
	default:
		return false
	}
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return z
}}

// write executes the template of a page and sends the result.
func (v *visit) write(status int, name string, data any) error {
	t, err := v.templates.page(name)
	if err != nil {
		return err
	}
	return v.send(status, t, data)
}

// send executes a template, or a block of one, and sends the result.
func (v *visit) send(status int, t *template.Template, data any) error {
	b, _ := buffers.Get().(*bytes.Buffer)
	b.Reset()
	defer buffers.Put(b)
	if err := t.Execute(b, data); err != nil {
		return err
	}
	h := v.w.Header()
	pageHeaders(h, "")
	h.Set("Vary", "Cookie, Accept-Encoding")
	if v.secret {
		h.Set("Cache-Control", "no-store")
	} else {
		h.Set("Cache-Control", "private, no-cache")
	}
	// Secrets are not compressed together with text that others may choose (BREACH).
	if v.secret || b.Len() < 1<<10 || !takesGzip(v.r) {
		v.respond(status, b.Bytes())
		return nil
	}
	h.Set("Content-Encoding", "gzip")
	packed, _ := buffers.Get().(*bytes.Buffer)
	packed.Reset()
	defer buffers.Put(packed)
	z, _ := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(packed)
	_, _ = z.Write(b.Bytes()) // a buffer takes everything
	_ = z.Close()
	v.respond(status, packed.Bytes())
	return nil
}

// respond sends a whole body.
func (v *visit) respond(status int, body []byte) {
	v.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	v.w.WriteHeader(status)
	_, _ = v.w.Write(body) // an error means that the browser is gone
}

// pageHeaders sets the headers of every page. to is an additional target of forms.
func pageHeaders(h http.Header, to string) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'"+to+"; base-uri 'none'; frame-ancestors 'none'")
	// Without a referrer, browsers also omit the Origin header, which the check of forms needs.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
}
