package web

import (
	"github.com/parley-dev/parley/internal/errs"
)

// writePart sends a part of a page, for a script that inserts it. It does not touch the session,
// so that a waiting tab does not keep the session alive.
func (v *visit) writePart(status int, page, part string, data any) error {
	t, err := v.templates.page(page)
	if err != nil {
		return err
	}
	if t = t.Lookup(part); t == nil {
		return errs.New(errs.Internal, "page.unknown", "there is no part %q of a page %q", part, page)
	}
	return v.send(status, t, data)
}
