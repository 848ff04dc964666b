package app

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/demo"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/store"
)

// A demo that was killed before it printed its key cannot go on. The next start says what to do.
func TestDemoSaysWhenAnEarlierStartWasInterrupted(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]identity.Founding{
		" has a part of a demo whose start was interrupted; delete this folder": demo.Founding,
		" has an org; leave out --data":                                         {Org: "main", OrgName: "Main", Admin: "admin", AdminName: "Admin"},
	} {
		cfg := config.Config{Store: config.Store{Data: filepath.Join(t.TempDir(), "data")}}
		s, err := openStore(t.Context(), cfg.Store, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := identity.NewOperator(s.IdentityStores(), Now, newIDs(Now).next).Found(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		err = RunDemo(t.Context(), cfg, false, Output{Stdout: io.Discard, Stderr: io.Discard})
		if err == nil || !strings.Contains(err.Error(), cfg.Data+want) {
			t.Errorf("a store of %s: %v, want %q", f.OrgName, err, want)
		}
	}
}
