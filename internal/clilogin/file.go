// Package clilogin is how the command line acts for a person: it signs in at a server
// by OAuth 2.1, keeps what it was given in a file of the person's own, and renews it.
//
// It is a client like any other: it finds the server's endpoints by its documents
// and knows nothing of how they work. Several processes share one file. A refresh
// token works once, so they take turns under a lock.
package clilogin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Login is what one person was given at one server.
type Login struct {
	Org          string    `json:"org"`
	Principal    string    `json:"principal"`
	Scopes       []string  `json:"scopes"`
	Since        time.Time `json:"since"`
	TokenURL     string    `json:"token_endpoint"`
	RevokeURL    string    `json:"revocation_endpoint"`
	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token"`
	ExpiresAt    time.Time `json:"expires_at"` // of the access token
}

// File holds the logins of one person, by the address of the server.
type File struct{ path string }

// Variable names another file than the usual one.
const Variable = "PARLEY_CREDENTIALS"

const (
	maxFile  = 1 << 20
	fileMode = 0o600
	dirMode  = 0o700
	others   = 0o077
)

// Default is the file of whoever runs the program.
func Default() (*File, error) {
	if path := os.Getenv(Variable); path != "" {
		return &File{path}, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("there is no place for logins: %w; name a file with %s", err, Variable)
	}
	return &File{filepath.Join(dir, "parley", "credentials.json")}, nil
}

// Address is the name under which a server's login is kept: its address without a
// slash at the end, the host in small letters.
func Address(server string) string {
	server = strings.TrimRight(server, "/")
	if u, err := url.Parse(server); err == nil {
		u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
		return u.String()
	}
	return server
}

type logins map[string]Login

// content is what the file holds.
type content struct {
	Logins logins `json:"logins"`
}

// Login returns the login at a server, if there is one.
func (f *File) Login(server string) (Login, bool, error) {
	all, err := f.read()
	l, ok := all[Address(server)]
	return l, ok, err
}

func (f *File) read() (logins, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return logins{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	// Windows keeps rights elsewhere; the person's own folder is closed to others there.
	if mode := info.Mode().Perm(); mode&others != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s holds your logins, and others can read or change it (mode %04o): run chmod 600 %s, and parley logout if others may have read it",
			f.path, mode, f.path)
	}
	var c content
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; delete it and run parley login", f.path, err)
	}
	if c.Logins == nil {
		c.Logins = logins{}
	}
	return c.Logins, nil
}

// turn is the file while nobody else changes it.
type turn struct {
	logins
	file *File
	temp *os.File
}

// locked runs do while no other process changes the file.
func (f *File) locked(ctx context.Context, do func(*turn) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), dirMode); err != nil {
		return err
	}
	unlock, err := lock(ctx, f.path+".lock")
	if err != nil {
		return fmt.Errorf("cannot take turns at %s: %w", f.path, err)
	}
	defer unlock()
	t := &turn{file: f}
	if t.logins, err = f.read(); err != nil {
		return err
	}
	defer t.drop()
	return do(t)
}

// lockEvery is how often a process that waits for its turn looks again.
const lockEvery = 20 * time.Millisecond

// lock waits for its turn, or until ctx ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	l := flock.New(path, flock.SetPermissions(fileMode))
	if _, err := l.TryLockContext(ctx, lockEvery); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return func() { _ = l.Unlock() }, nil
}

// prepare makes room for what will be saved. It comes before a refresh token is used
// up: a disk that cannot be written to must not cost the login.
func (t *turn) prepare() (err error) {
	t.temp, err = os.CreateTemp(filepath.Dir(t.file.path), ".credentials-*") // mode 0600
	return err
}

// save replaces the file whole, so that readers see the old or the new one.
func (t *turn) save() error {
	if t.temp == nil {
		if err := t.prepare(); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(content{t.logins}, "", "  ")
	if err != nil {
		return err
	}
	if _, err := t.temp.Write(append(data, '\n')); err != nil {
		return err
	}
	if err := t.temp.Sync(); err != nil {
		return err
	}
	name := t.temp.Name()
	if err := t.temp.Close(); err != nil {
		return err
	}
	if err := replace(name, t.file.path); err != nil {
		return err
	}
	t.temp = nil
	return nil
}

func (t *turn) drop() {
	if t.temp != nil {
		_ = t.temp.Close()
		_ = os.Remove(t.temp.Name())
	}
}

// replace renames. Windows refuses while somebody reads the old file, which takes
// no longer than a moment.
func replace(from, to string) error {
	for attempt := 1; ; attempt++ {
		err := os.Rename(from, to)
		if err == nil || runtime.GOOS != "windows" || attempt == 50 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Put keeps a login, and returns the one that it replaces.
func (f *File) Put(ctx context.Context, server string, l Login) (old Login, had bool, err error) {
	err = f.locked(ctx, func(t *turn) error {
		old, had = t.logins[Address(server)]
		t.logins[Address(server)] = l
		return t.save()
	})
	return old, had, err
}
