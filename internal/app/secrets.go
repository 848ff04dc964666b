package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/secret"
)

// openKeys reads the key file of a store. A file that --secret-key-file names must exist. Without
// the flag the result has no keys if there is no file, and is nil on PostgreSQL.
func openKeys(cfg config.Store) (*secret.Keyring, error) {
	switch path := cfg.KeyFile(); {
	case cfg.SecretKeyFile != "":
		k, err := secret.Load(path, Now)
		if err != nil {
			return nil, fmt.Errorf("--secret-key-file: %w; make a new one with \"parley secrets add-key\"", err)
		}
		return k, nil
	case path != "":
		return secret.Find(path, Now)
	}
	return nil, nil
}

// readyKeys makes the key file of a new SQLite store. It returns an error if the file is not the one
// of this store: the server could not read its own keys, and what it encrypts would be lost when
// the right file comes back.
func (s *Server) readyKeys(ctx context.Context) error {
	used, err := s.store.SecretKeys(ctx)
	if err != nil {
		return err
	}
	have := s.keys.Keys()
	for _, id := range used {
		if !slices.Contains(have.IDs(), id) {
			return errLostKey(s.cfg.Store, id)
		}
	}
	switch {
	case len(have) > 0:
	case s.keys != nil:
		if err := s.keys.Make(); err != nil {
			return fmt.Errorf("make the key file for secrets in the store: %w", err)
		}
		s.log.Info("made the key file for secrets in the store; keep a copy of it apart from back-ups", "file", s.keys.Path())
	default:
		s.log.Warn("secrets in the database are not encrypted; make a key file with \"parley secrets add-key\", and give it " +
			"to every server with --secret-key-file")
	}
	return nil
}

// errLostKey says what to do about values that cannot be decrypted.
func errLostKey(cfg config.Store, id string) error {
	where := "no key file is given"
	if path := cfg.KeyFile(); path != "" {
		where = "the key file " + path + " does not have it"
	}
	return fmt.Errorf("secrets in store %s are encrypted under the key %s, and %s; give the key file of this store with "+
		"--secret-key-file. If it is lost, \"parley secrets drop-lost\" removes what cannot be read any more",
		StoreName(cfg), id, where)
}

// keepSecrets encrypts the secrets of a store from before it had keys, and then reports changes of
// the key file until ctx ends.
func (s *Server) keepSecrets(ctx context.Context) {
	if s.keys == nil {
		return
	}
	sealed, problem, current := false, "", s.keys.Current()
	for tick := time.NewTicker(secret.Every); ; {
		if !sealed {
			n, err := s.store.SealAll(ctx)
			switch sealed = err == nil; {
			case err != nil && ctx.Err() == nil:
				s.log.Error("cannot encrypt the secrets in the store; trying again", "error", err)
			case n > 0:
				s.log.Info("encrypted the secrets in the store", "values", n, "key", current)
			}
		}
		text := ""
		if err := s.keys.Refresh(); err != nil {
			text = err.Error()
		}
		if text != problem && text != "" {
			s.log.Error("cannot read the key file for secrets; the keys from before are used", "error", text)
		}
		if now := s.keys.Current(); now != current {
			s.log.Info("the key for secrets has changed", "key", now, "before", current)
			current = now
		}
		problem = text
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}
