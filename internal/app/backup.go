package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/store"
)

// BackupTo says where a back-up goes.
type BackupTo struct {
	// Dest is a new file, or a folder, in which the file gets a name with the time; or "-" for Stdout.
	Dest   string
	Stdout io.Writer
	// Keep is how many back-ups to keep in the folder; 0 means all. It counts files with such names only.
	Keep int
	// WithKey puts the key file into a back-up of a store.
	WithKey bool

	prefix string // of the name in a folder; empty: parley
}

// Progress is called while a table is copied.
type Progress func(table string, rows int64)

// BackedUp describes a back-up.
type BackedUp struct {
	backup.Header
	backup.Summary
	Path    string   // empty if it went to Stdout
	Size    int64    // of the file, in bytes
	Removed []string // older back-ups that Keep removed
}

// backupName matches the names of the files that Backup makes in a folder. They sort by time.
var backupName = regexp.MustCompile(`^parley-\d{8}T\d{6}Z\.backup$`)

// Backup writes all data of a store, as of one moment. Servers may use the store meanwhile.
func Backup(ctx context.Context, cfg config.Store, to BackupTo, p Progress) (BackedUp, error) {
	s, err := store.OpenSnapshot(ctx, storeOptions(cfg, store.Options{}))
	if err != nil {
		return BackedUp{}, err
	}
	defer func() { _ = s.Close() }()
	use, err := s.SealedUse(ctx)
	if err != nil {
		return BackedUp{}, err
	}
	h := backup.Header{Keys: use.Keys(), OpenSecrets: use.Count("")}
	if to.WithKey {
		keys, err := openKeys(cfg)
		switch {
		case err != nil:
			return BackedUp{}, err
		case len(keys.Keys()) == 0:
			return BackedUp{}, errors.New("there is no key file to include; name it with --secret-key-file")
		}
		h.KeyFile = string(keys.Keys().Format())
	}
	return to.save(s, h, func(b *backup.Writer) error { return s.Write(ctx, b, p) })
}

// save writes a back-up of the snapshot, of which fill writes the rows. It completes the header.
func (to BackupTo) save(s *store.Snapshot, h backup.Header, fill func(*backup.Writer) error) (_ BackedUp, err error) {
	h.Version, h.Schema, h.Engine, h.CreatedAt = Version(), s.Schema, s.Engine, Now()
	out := BackedUp{Header: h}
	write := func(w io.Writer) error {
		b, err := backup.NewWriter(w, out.Header)
		if err != nil {
			return err
		}
		if err := fill(b); err != nil {
			b.Abort()
			return err
		}
		out.Summary, err = b.Close()
		return err
	}
	if to.Dest == "-" {
		return out, write(to.Stdout)
	}
	if out.Path, err = to.path(out.CreatedAt); err != nil {
		return out, err
	}
	if out.Size, err = writeNew(out.Path, write); err != nil {
		return out, err
	}
	out.Removed, err = to.rotate(out.Path)
	return out, err
}

// path returns the file to write.
func (to BackupTo) path(at time.Time) (string, error) {
	st, err := os.Stat(to.Dest)
	switch {
	case err == nil && st.IsDir(), err != nil && strings.HasSuffix(to.Dest, string(filepath.Separator)):
		if err := os.MkdirAll(to.Dest, 0o700); err != nil {
			return "", err
		}
		prefix := to.prefix
		if prefix == "" {
			prefix = "parley"
		}
		return filepath.Join(to.Dest, prefix+"-"+at.UTC().Format("20060102T150405Z")+".backup"), nil
	case to.Keep > 0:
		return "", fmt.Errorf("--keep needs a folder, and %s is none; end its name with / to make it", to.Dest)
	case err == nil:
		return "", fmt.Errorf("%s exists; name another file, or a folder", to.Dest)
	case errors.Is(err, fs.ErrNotExist):
		return to.Dest, nil
	}
	return "", err
}

// writeNew writes a file that appears only when it is complete and on disk. Only its owner can read
// it: it contains secrets.
func writeNew(path string, write func(io.Writer) error) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*") // with mode 0600
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	// Link fails if the file exists by now. File systems without links get a rename.
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return 0, fmt.Errorf("%s exists; name another file", path)
	} else if err != nil {
		return st.Size(), errors.Join(os.Rename(f.Name(), path), syncFolder(path))
	}
	return st.Size(), errors.Join(os.Remove(f.Name()), syncFolder(path))
}

// rotate removes the oldest back-ups in the folder.
func (to BackupTo) rotate(newest string) (removed []string, err error) {
	if to.Keep == 0 {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Dir(newest))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if whole, _, part := strings.Cut(e.Name(), ".part-"); part && backupName.MatchString(whole) && oldFile(e) {
			// A back-up was killed. Its part contains secrets.
			if err := os.Remove(filepath.Join(filepath.Dir(newest), e.Name())); err != nil {
				return nil, fmt.Errorf("the back-up is complete, but a part of an older one remains: %w", err)
			}
		}
		if e.Type().IsRegular() && backupName.MatchString(e.Name()) && e.Name() != filepath.Base(newest) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for len(names) >= to.Keep {
		old := filepath.Join(filepath.Dir(newest), names[0])
		if err := os.Remove(old); err != nil {
			return removed, fmt.Errorf("the back-up is complete, but an older one remains: %w", err)
		}
		removed, names = append(removed, old), names[1:]
	}
	return removed, nil
}

// oldFile reports whether a file was not written to for a day.
func oldFile(e fs.DirEntry) bool {
	st, err := e.Info()
	return err == nil && time.Since(st.ModTime()) > 24*time.Hour
}

// Restored describes what Restore did, or would do.
type Restored struct {
	backup.Header
	backup.Summary
	Store string
	// KeyFile is the file for the keys of the secrets; empty: none is given.
	KeyFile string
	// Missing are the ids of keys that secrets of the back-up need and the file does not have.
	Missing []string
}

// Restore fills an empty store from a back-up, of either engine. With dry it reads the back-up to its
// end and changes nothing.
func Restore(ctx context.Context, cfg config.Store, from io.Reader, dry bool, p Progress) (Restored, error) {
	r, err := backup.NewReader(from)
	if err != nil {
		return Restored{}, err
	}
	defer r.Close()
	out := Restored{Header: r.Header(), Store: StoreName(cfg), KeyFile: cfg.KeyFile()}
	switch {
	case dry && out.Org == "":
		err = r.Verify(p)
	case out.Header.KeyFile != "" && out.KeyFile == "":
		err = errors.New("the back-up contains the key of its secrets; name the file to write it to with --secret-key-file, " +
			"and give that file to the servers")
	default:
		if err = store.Restore(ctx, storeOptions(cfg, store.Options{}), r, p); err == nil {
			err = restoreKeys(&out)
		}
	}
	out.Summary = r.Summary()
	return out, err
}

// restoreKeys writes the key file of a back-up, unless there is one, and notes which keys are missing.
func restoreKeys(r *Restored) error {
	if r.Header.KeyFile != "" {
		keys, err := secret.Parse([]byte(r.Header.KeyFile))
		if err == nil {
			err = secret.CreateFile(r.KeyFile, keys)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("the rows are restored, but not the key file: %w", err)
		}
	}
	var have secret.Keys
	if r.KeyFile != "" {
		var err error
		if have, err = secret.ReadFile(r.KeyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the rows are restored, but their secrets cannot be read: %w", err)
		}
	}
	for _, id := range r.Keys {
		if !have.Has(id) {
			r.Missing = append(r.Missing, id)
		}
	}
	return nil
}
