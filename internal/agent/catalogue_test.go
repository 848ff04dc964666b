package agent

import (
	"testing"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Cursors are not signed: anybody can make one with any values.
func TestForgedCursorsAreRefused(t *testing.T) {
	t.Parallel()
	p := identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	caller := &identity.Caller{Principal: p, Scopes: identity.Scopes{"svc:a2a:write"}}
	a, err := identity.Authorize(caller, "acme", identity.CallAgent)
	if err != nil {
		t.Fatal(err)
	}
	var f Find
	for name, c := range map[string]string{
		"a rank that no column can hold": f.list().At().Int(1 << 40).Text("scout").String(),
		"a negative rank":                f.list().At().Int(-1).Text("scout").String(),
		"an id that cannot be stored":    f.list().At().Int(0).Text("a\x00b").String(),
	} {
		find := Find{Cursor: c}
		if _, err := find.search(a); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v, want that it is invalid", name, err)
		}
	}
	find := Find{Cursor: f.list().At().Int(maxRank).Text("scout").String()}
	if _, err := find.search(a); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"a\x00b", "\xff"} {
		if _, err := usedAfter(cursor.Of("usage").At().Text(id).String()); errs.KindOf(err) != errs.Invalid {
			t.Errorf("usage after %q: %v, want that it is invalid", id, err)
		}
	}
}
