package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadFile reads a key file. It refuses one that other users of the machine can read.
func ReadFile(path string) (Keys, error) {
	_, keys, err := readFile(path)
	return keys, err
}

func readFile(path string) (fs.FileInfo, Keys, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("key file: %w", err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("key file: %w", err)
	case !st.Mode().IsRegular():
		return nil, nil, fmt.Errorf("key file %s: it is not a regular file", path)
	case exposed(st):
		return nil, nil, fmt.Errorf("key file %s: other users of this machine can read it (mode %#o); run \"chmod 600 %s\", "+
			"and rotate the key if they may have done so", path, st.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	var keys Keys
	if err == nil {
		keys, err = Parse(text)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return st, keys, nil
}

// CreateFile writes a new key file that only its owner can read. If the file exists by now, it is
// left as it is; read it then.
func CreateFile(path string, keys Keys) error {
	temp, err := writeTemp(path, keys, nil)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }()
	// Link fails if the file exists, so that of two processes one writes the file.
	err = os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without links
		if _, serr := os.Lstat(path); errors.Is(serr, fs.ErrNotExist) {
			err = os.Rename(temp, path)
		}
	}
	if err != nil {
		return fmt.Errorf("make the key file: %w", err)
	}
	return syncFolder(path)
}

// EditFile replaces the keys of a file with what change returns. Readers see the old file or the
// new one. The new one has the owner and the mode of the old one. Two processes cannot edit the file
// at once.
func EditFile(path string, change func(Keys) (Keys, error)) (Keys, error) {
	path, err := filepath.EvalSymlinks(path) // rename would replace the link
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	unlock, err := lock(path)
	if err != nil {
		return nil, fmt.Errorf("lock the key file %s: %w", path, err)
	}
	defer unlock()
	st, before, err := readFile(path)
	if err != nil {
		return nil, err
	}
	after, err := change(before)
	if err != nil || bytes.Equal(before.Format(), after.Format()) {
		return after, err
	}
	temp, err := writeTemp(path, after, st)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return nil, fmt.Errorf("replace the key file: %w", err)
	}
	return after, syncFolder(path)
}

// writeTemp writes the keys to a file beside path, and to the disk. It gets the owner and the mode
// of another file, if one is given.
func writeTemp(path string, keys Keys, like fs.FileInfo) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // with mode 0600
	if err != nil {
		return "", fmt.Errorf("write the key file: %w", err)
	}
	_, err = f.Write(keys.Format())
	if err == nil && like != nil {
		err = keepOwner(f, like)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("write the key file: %w", err)
	}
	return f.Name(), nil
}
