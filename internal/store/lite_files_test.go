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

// Not parallel: the umask belongs to the process.
func TestFilesOfTheStoreArePrivate(t *testing.T) { // see above
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
	if err := s.Identity().CreateOrg(t.Context(), identity.Org{ID: "acme", Name: "Acme", CreatedAt: e.At}, e); err != nil {
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
			t.Errorf("%s has the mode %04o", f.Name(), st.Mode().Perm())
		}
	}
	if got := strings.Join(seen, " "); got != "parley.db parley.db-shm parley.db-wal parley.lock" {
		t.Error(got)
	}
	// The folder is somebody else's business: it is told of, and left alone.
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o755 {
		t.Error(st, err)
	}
	if told := store.Exposed(dir); len(told) != 1 || !strings.Contains(told[0], "chmod 700 "+dir) {
		t.Error(told)
	}
}
