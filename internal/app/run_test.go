package app

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/identity"
)

// The command for another key works as pasted: it quotes the folder, and names an org and an
// admin that exist.
func TestTheCommandForAnotherKey(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", filepath.Join(t.TempDir(), "my data")
	s, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	s.Start()
	check := func(want string) {
		t.Helper()
		if got := s.keyCommand(t.Context()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	at := " --scope svc:tasks:read --data '" + cfg.Data + "'"
	check("parley key create --as user:admin" + at)
	op := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	zoe := identity.Principal{Org: "main", Kind: identity.User, ID: "zoe"}
	if _, err := op.CreateMember(t.Context(), zoe, "", true); err != nil {
		t.Fatal(err)
	}
	admin := identity.Principal{Org: "main", Kind: identity.User, ID: "admin"}
	if _, err := op.SetAdmin(t.Context(), admin, false); err != nil {
		t.Fatal(err)
	}
	check("parley key create --as user:zoe" + at)
	if _, err := op.CreateOrg(t.Context(), "acme", ""); err != nil {
		t.Fatal(err)
	}
	check("parley key create --as user:USER" + at + " --org acme") // which has no users
}

// The URL of a database may have a password.
func TestTheDatabaseIsNotPrinted(t *testing.T) {
	const url = "postgres://parley:secret@db/parley"
	s := &Server{cfg: config.Config{Store: config.Store{Database: url}}}
	t.Setenv("PARLEY_DATABASE", "")
	if got, want := s.storeFlag(), "--database URL"; got != want {
		t.Errorf("given as a flag: %s; want %s", got, want)
	}
	t.Setenv("PARLEY_DATABASE", url)
	if got, want := s.storeFlag(), `--database "$PARLEY_DATABASE"`; got != want {
		t.Errorf("given as a variable: %s; want %s", got, want)
	}
	for in, want := range map[string]string{url: "postgres://parley@db/parley", "postgres://a b:p@": "PostgreSQL"} {
		if got := StoreName(config.Store{Database: in}); got != want {
			t.Errorf("StoreName(%q) = %q; want %q", in, got, want)
		}
	}
}
