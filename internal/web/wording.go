package web

import (
	"errors"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// forPeople rewords errors that are meant for programs: headers, keys and versions mean nothing
// to readers of a page. Pages that can be more specific reword an error earlier.
func forPeople(err error) error {
	if err == nil {
		return nil
	}
	e := errs.As(err)
	switch {
	case errors.Is(err, idempotency.ErrReused):
		return errFormReused
	case errors.Is(err, identity.ErrMissing):
		return errs.New(errs.Unauthenticated, e.Code, "you are signed out, so nothing was done; sign in again")
	case len(e.Fields) > 0 && e.Fields[0].Path.Head() == idempotency.Field:
		return errIncomplete
	case e.Scope != "": // its message is about a key
		return errs.New(errs.Forbidden, e.Code, "you may not do this; ask an admin of this org")
	}
	switch e.Code {
	case "request.stale":
		return errs.New(errs.Stale, e.Code,
			"another user has changed it, so nothing was saved; "+
				"check the form below, and save it again if you still want to")
	case "followup.transition_not_allowed":
		return errs.New(errs.Conflict, e.Code,
			"nothing was changed: another user has moved it; see its status below")
	}
	return err
}

// errFormReused rejects a form that was already sent with other fields, as happens with the back
// button.
var errFormReused = errs.New(errs.Conflict, "form.reused",
	"this form was already sent and carried out with other values; check the current page, "+
		"and send the form again if you still want to")

// errIncomplete rejects a form whose hidden fields are missing or wrong.
var errIncomplete = errs.New(errs.Malformed, "request.malformed", "this form is incomplete; open the page again")

// onlyAdmins rewords a missing scope. All members have the same rights except admins, so the
// missing right is that of an admin.
func onlyAdmins(action identity.Action, err error) error {
	if e := errs.As(err); err != nil && e.Code == "auth.scope_missing" {
		return errs.New(errs.Forbidden, e.Code, "only admins can %s; ask an admin of this org", action)
	}
	return err
}
