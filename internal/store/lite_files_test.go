//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/store"
)

// Not parallel, because the umask belongs to the process.
func TestFilesOfTheStoreArePrivate(t *testing.T) {
	old := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(old) })
	dir := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	release, err := store.LockDir(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	s := open(t, store.Options{Dir: dir})
	e := identity.NewEntry(t.Context(), time.Now().UTC(), "acme", identity.OrgCreate, "acme", "")
	org := identity.Org{ID: "acme", Name: "Acme", CreatedAt: e.At}
	if err := s.Identity().CreateOrg(t.Context(), org, e); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := []string{}
	for _, f := range files {
		st, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, f.Name())
		if st.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s = %04o, want 0600", f.Name(), st.Mode().Perm())
		}
	}
	if got := strings.Join(seen, " "); got != "parley.db parley.db-shm parley.db-wal parley.lock" {
		t.Errorf("files = %s, want the database, -shm, -wal and the lock", got)
	}
	// The folder existed before: its mode is reported, but not changed.
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("folder = %v, %v, want mode 0755", st, err)
	}
	if told := store.Exposed(dir); len(told) != 1 || !strings.Contains(told[0], "chmod 700 "+dir) {
		t.Errorf("Exposed = %q, want chmod 700 %s", told, dir)
	}
}
