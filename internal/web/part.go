package web

import (
	"bytes"

	"github.com/parley-dev/parley/internal/errs"
)

// writePart sends one part of a page, for a script that brings it up to date in place. It reads
// and writes no session data: a tab that waits does not keep a session alive.
func (v *visit) writePart(status int, page, part string, data any) error {
	t := v.pages[page]
	if t == nil || t.Lookup(part) == nil {
		return errs.New(errs.Internal, "page.unknown", "there is no part %q of a page %q", part, page)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, part, data); err != nil {
		return err
	}
	h := v.w.Header()
	pageHeaders(h, "")
	h.Set("Cache-Control", "no-store")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes()) // the browser went away
	return nil
}
