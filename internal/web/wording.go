package web

import (
	"errors"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// forPeople replaces errors whose words are meant for programs: people who read pages know no
// headers, keys and versions. Pages that can say more word an error before it comes here.
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
	case e.Scope != "": // it speaks of a key
		return errs.New(errs.Forbidden, e.Code, "you may not do this; ask an admin of this org")
	}
	switch e.Code {
	case "request.stale":
		return errs.New(errs.Stale, e.Code,
			"somebody else changed it meanwhile, so nothing was saved; "+
				"check what is below, and save it again if you still want to")
	case "followup.transition_not_allowed":
		return errs.New(errs.Conflict, e.Code,
			"nothing was changed: somebody else has moved it meanwhile; see its status below")
	}
	return err
}

// errFormReused is the refusal of a form that was sent before with other fields, as happens
// on the way back.
var errFormReused = errs.New(errs.Conflict, "form.reused",
	"this form was sent before, and what it said then was done; look at the page as it is now, "+
		"and send it again if you still want to")

// errIncomplete is the refusal of a form whose hidden fields are missing or wrong.
var errIncomplete = errs.New(errs.Malformed, "request.malformed", "this form is incomplete; open the page again")

// onlyAdmins words the refusal of an action. What a member may do without being an admin, all
// members may.
func onlyAdmins(action identity.Action, err error) error {
	if e := errs.As(err); err != nil && e.Code == "auth.scope_missing" {
		return errs.New(errs.Forbidden, e.Code, "only admins can %s; ask an admin of this org", action)
	}
	return err
}
