package web

import (
	"errors"
	"net/url"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// What the pages for admins share: keys, clients, members, the audit log and settings.

// adminPerPage bounds the rows of their lists.
const adminPerPage = 50

// audited tells the audit log that an action was refused, as REST does. A field that was filled
// in wrongly is between the form and its reader.
func (v *visit) audited(action identity.AuditAction, target string, err error) error {
	if err == nil || errs.KindOf(err) == errs.Invalid {
		return err
	}
	if failed := v.OrgAdmin.Refused(v.r.Context(), v.member.Org, action, target, err); failed != nil {
		v.Logger.ErrorContext(v.r.Context(), "a refusal is missing in the audit log", "error", failed)
	}
	return err
}

// sealed reports whether a secret was made before and is not shown to this session again.
func sealed(err error) bool { return errors.Is(err, idempotency.ErrSealed) }

// fieldError is an error of one field of a form, or of a parameter of the page's address.
func fieldError(name, message string) error {
	return errs.InvalidFields(errs.Field{Path: errs.At(name), Message: message})
}

// secret is what a response shows once: a key, a client's secret or a link.
type secret struct {
	Value string // empty: the form was sent again, and the secret is not shown twice
	Made  string // what it belongs to: "key", "client", "invitation"
}

// newSecret decides whether to show a secret: once, by the response to the form that made it.
// The response is kept nowhere.
func (v *visit) newSecret(made, value string, once *idempotency.Once) *secret {
	v.secret = true
	if once.Replayed() {
		value = ""
	}
	return &secret{Value: value, Made: made}
}

// nextPage is the list after the given cursor; empty: this is its end.
func (v *visit) nextPage(cursor string) string {
	if cursor == "" {
		return ""
	}
	q := v.r.URL.Query()
	q.Set("cursor", cursor)
	return v.r.URL.Path + "?" + q.Encode()
}

// cursorLinks lead to the next page of a list with cursors, and back to its start.
type cursorLinks struct{ First, Next string }

// cursorPager makes them.
func (v *visit) cursorPager(next string) cursorLinks {
	p := cursorLinks{Next: v.nextPage(next)}
	if v.r.URL.Query().Get("cursor") != "" {
		p.First = v.withQuery("", "")
	}
	return p
}

// overlap is how long what is replaced works beside its successor.
type overlap struct {
	Seconds  int
	Name     string
	Selected bool
}

// overlaps are the choices; 24 hours are the default.
func overlaps() []overlap {
	return []overlap{
		{0, "none: it ends at once", false},
		{int(time.Hour / time.Second), "1 hour", false},
		{int(identity.DefaultOverlap / time.Second), "24 hours", true},
		{int(identity.MaxOverlap / time.Second), "7 days", false},
	}
}

// overlapOf reads the choice.
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

// dayOf reads a day of a date field: its first moment, in UTC.
func dayOf(s string) (time.Time, bool) {
	t, err := time.Parse(time.DateOnly, s)
	return t.UTC(), err == nil
}

// link is a path with parameters.
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
