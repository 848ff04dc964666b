package web

import (
	"errors"
	"net/url"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Shared parts of the admin pages: keys, clients, members, the audit log and settings.

// adminPerPage is the page size of their lists.
const adminPerPage = 50

// audited writes a refused action to the audit log, as package rest does. Invalid fields are not
// audited.
func (v *visit) audited(action identity.AuditAction, target string, err error) error {
	if err == nil || errs.KindOf(err) == errs.Invalid {
		return err
	}
	if failed := v.OrgAdmin.Refused(v.r.Context(), v.member.Org, action, target, err); failed != nil {
		v.Logger.ErrorContext(v.r.Context(), "writing a refusal to the audit log failed", "error", failed)
	}
	return err
}

// sealed reports whether a secret was created earlier and cannot be shown to this session again.
func sealed(err error) bool { return errors.Is(err, idempotency.ErrSealed) }

// fieldError returns an error about a form field or a query parameter.
func fieldError(name, message string) error {
	return errs.InvalidFields(errs.Field{Path: errs.At(name), Message: message})
}

// secret is shown once: a key, a client secret or a link.
type secret struct {
	Value string // empty if the form was sent again: it is shown once
	Made  string // kind of its owner: "key", "client", "invitation"
}

// newSecret returns the secret for the first response to the form that created it. The response
// must not be stored.
func (v *visit) newSecret(made, value string, once *idempotency.Once) *secret {
	v.secret = true
	if once.Replayed() {
		value = ""
	}
	return &secret{Value: value, Made: made}
}

// nextPage returns the URL of the page after the cursor, or "" at the end of the list.
func (v *visit) nextPage(cursor string) string {
	if cursor == "" {
		return ""
	}
	q := v.r.URL.Query()
	q.Set("cursor", cursor)
	return v.r.URL.Path + "?" + q.Encode()
}

// cursorLinks has the links to the next page and to the start of a list with cursors.
type cursorLinks struct{ First, Next string }

// cursorPager returns the links of the current page.
func (v *visit) cursorPager(next string) cursorLinks {
	p := cursorLinks{Next: v.nextPage(next)}
	if v.r.URL.Query().Get("cursor") != "" {
		p.First = v.withQuery("", "")
	}
	return p
}

// overlap is how long a replaced key or secret keeps working.
type overlap struct {
	Seconds  int
	Name     string
	Selected bool
}

// overlaps returns the choices; 24 hours is the default.
func overlaps() []overlap {
	return []overlap{
		{0, "none: it ends at once", false},
		{int(time.Hour / time.Second), "1 hour", false},
		{int(identity.DefaultOverlap / time.Second), "24 hours", true},
		{int(identity.MaxOverlap / time.Second), "7 days", false},
	}
}

// overlapOf parses the choice.
func (v *visit) overlapOf() (time.Duration, error) {
	d, err := time.ParseDuration(v.value("overlap") + "s")
	if err != nil {
		return 0, fieldError("overlap", "must be one of the choices")
	}
	if err := identity.CheckOverlap(d); err != nil {
		return 0, fieldError("overlap", "must be between none and 7 days")
	}
	return d, nil
}

// dayOf parses a date field and returns the start of the day in UTC.
func dayOf(s string) (time.Time, bool) {
	t, err := time.Parse(time.DateOnly, s)
	return t.UTC(), err == nil
}

// link returns a path with query parameters.
func link(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}
