package store

import (
	"context"
	"errors"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/secret"
)

// Secret returns the value that is stored under the name. If there is none, it stores fresh. All
// callers on all nodes get the same value.
func (s *Store) Secret(ctx context.Context, name, fresh string) (string, error) {
	value, err := s.KeptSecret(ctx, name)
	if !errors.Is(err, errs.ErrNotFound) {
		return value, err
	}
	stored, err := s.sealSecret(name, fresh)
	if err != nil {
		return "", err
	}
	if err := s.eng.write(ctx, func(x *tx) error {
		x.exec(`INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			name, stored, micros(s.now()))
		return nil
	}); err != nil {
		return "", err
	}
	return s.KeptSecret(ctx, name)
}

// sealSecret returns what to store under a name.
func (s *Store) sealSecret(name, value string) (string, error) {
	if isOpen("secrets", []string{name}) {
		return value, nil
	}
	return s.hooks.seal(secret.Purpose("secrets", name), value)
}

// SecretKeys returns the ids of the keys that the server's own secrets are encrypted under. A server
// that lacks one of them cannot work.
func (s *Store) SecretKeys(ctx context.Context) ([]string, error) {
	var out []string
	err := each(ctx, s.eng, func(r rows) error {
		var value string
		if err := r.Scan(&value); err != nil {
			return err
		}
		if id, ok := secret.KeyOf(value); ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
		return nil
	}, `SELECT value FROM secrets`)
	return out, err
}

// KeptSecret returns the value that is stored under the name, or errs.ErrNotFound.
func (s *Store) KeptSecret(ctx context.Context, name string) (string, error) {
	value := ""
	found, err := one(ctx, s.eng, []any{&value}, `SELECT value FROM secrets WHERE name = $1`, name)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	return s.hooks.unseal(secret.Purpose("secrets", name), value)
}

// KeepSecret stores a value under the name, instead of the one before.
func (s *Store) KeepSecret(ctx context.Context, name, value string) error {
	stored, err := s.sealSecret(name, value)
	if err != nil {
		return err
	}
	return s.eng.write(ctx, func(x *tx) error {
		x.exec(`INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, created_at = excluded.created_at`,
			name, stored, micros(s.now()))
		return nil
	})
}

// ForgetSecret removes what is stored under the name, if anything is.
func (s *Store) ForgetSecret(ctx context.Context, name string) error {
	return s.eng.write(ctx, func(x *tx) error {
		x.exec(`DELETE FROM secrets WHERE name = $1`, name)
		return nil
	})
}
