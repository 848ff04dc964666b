// Package clilogin signs the command line in at a server with OAuth 2.1, stores the tokens in
// a file of the person, and renews them.
//
// It is an ordinary OAuth client: it discovers the endpoints of the server by their metadata
// and must not know how the server implements them. Several processes share one file. A
// refresh token works once, so they renew it under a lock.
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

// Login holds the tokens of one person at one server.
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

// File holds the logins of one person, by the URL of the server.
type File struct{ path string }

// Variable is the environment variable with the path of another file.
const Variable = "PARLEY_CREDENTIALS"

const (
	maxFile  = 1 << 20
	fileMode = 0o600
	dirMode  = 0o700
	others   = 0o077
)

// Default returns the file of the current user.
func Default() (*File, error) {
	if path := os.Getenv(Variable); path != "" {
		return &File{path}, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("no folder for logins: %w; name a file with %s", err, Variable)
	}
	return &File{filepath.Join(dir, "parley", "credentials.json")}, nil
}

// Address returns the normalized URL of a server, under which its login is stored: without a
// trailing slash, the host in lower case.
func Address(server string) string {
	server = strings.TrimRight(server, "/")
	if u, err := url.Parse(server); err == nil {
		u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
		return u.String()
	}
	return server
}

type logins map[string]Login

// content is the content of the file.
type content struct {
	Logins logins `json:"logins"`
}

// Login returns the login at a server, if there is one.
func (f *File) Login(server string) (Login, bool, error) {
	all, err := f.read()
	l, ok := all[Address(server)]
	return l, ok, err
}

// Latest returns the server of the latest login; "" if there is none.
func (f *File) Latest() (string, error) {
	all, err := f.read()
	server := ""
	for s, l := range all {
		if server == "" || l.Since.After(all[server].Since) || l.Since.Equal(all[server].Since) && s < server {
			server = s
		}
	}
	return server, err
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
	// On Windows the mode does not tell; there the user's folder is closed to others.
	if mode := info.Mode().Perm(); mode&others != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s holds your logins, and others can read or change it (mode %04o): "+
			"run chmod 600 %s, and parley logout if others may have read it", f.path, mode, f.path)
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

// turn is the file while this process holds its lock.
type turn struct {
	logins
	file *File
	temp *os.File
}

// locked calls do while it holds the lock of the file.
func (f *File) locked(ctx context.Context, do func(*turn) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), dirMode); err != nil {
		return err
	}
	unlock, err := lock(ctx, f.path+".lock")
	if err != nil {
		return fmt.Errorf("cannot lock %s: %w", f.path, err)
	}
	defer unlock()
	t := &turn{file: f}
	if t.logins, err = f.read(); err != nil {
		return err
	}
	defer t.drop()
	return do(t)
}

// lockEvery is the interval in which a process tries to get the lock.
const lockEvery = 20 * time.Millisecond

// lock waits for the lock until ctx ends.
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

// prepare creates the temporary file for save. It is called before a refresh token is used:
// if the disk cannot be written to, the login must not be lost.
func (t *turn) prepare() (err error) {
	t.temp, err = os.CreateTemp(filepath.Dir(t.file.path), ".credentials-*") // mode 0600
	return err
}

// save replaces the file atomically.
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

// replace renames a file. On Windows it retries, because renaming fails while another process
// reads the old file.
func replace(from, to string) error {
	for attempt := 1; ; attempt++ {
		err := os.Rename(from, to)
		if err == nil || runtime.GOOS != "windows" || attempt == 50 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Put stores a login and returns the one that it replaces.
func (f *File) Put(ctx context.Context, server string, l Login) (old Login, had bool, err error) {
	err = f.locked(ctx, func(t *turn) error {
		old, had = t.logins[Address(server)]
		t.logins[Address(server)] = l
		return t.save()
	})
	return old, had, err
}
