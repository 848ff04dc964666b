package orgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/store"
)

// EmptyDir returns a data directory with an empty SQLite store of the newest schema. It is a copy:
// the migrations take most of the time of a small test.
func EmptyDir(tb testing.TB) string {
	tb.Helper()
	files, err := emptyFiles()
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// EmptyDatabase returns the URL of a PostgreSQL database with an empty store of the newest schema.
func EmptyDatabase(tb testing.TB) string {
	tb.Helper()
	return pgtest.Copy(tb, func(url string) error { return migrate(store.Options{URL: url}) })
}

var emptyFiles = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "parley-orgtest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := migrate(store.Options{Dir: dir}); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	files := map[string][]byte{}
	for _, f := range list {
		b, readErr := os.ReadFile(filepath.Join(dir, f.Name()))
		files[f.Name()], err = b, errors.Join(err, readErr)
	}
	return files, err
})

func migrate(o store.Options) error {
	st, err := store.Open(context.Background(), o)
	if err != nil {
		return err
	}
	return st.Close()
}
