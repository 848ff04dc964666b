package store

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
)

// Secret returns the value that is stored under the name. If there is none, it stores fresh. All
// callers on all nodes get the same value.
func (s *Store) Secret(ctx context.Context, name, fresh string) (string, error) {
	value := ""
	find := func() (bool, error) {
		return one(ctx, s.eng, []any{&value}, `SELECT value FROM secrets WHERE name = $1`, name)
	}
	if found, err := find(); found || err != nil {
		return value, err
	}
	err := s.eng.write(ctx, func(x *tx) error {
		x.exec(`INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			name, fresh, micros(s.now()))
		return nil
	})
	if err == nil {
		_, err = find()
	}
	return value, err
}

// KeptSecret returns the value that is stored under the name, or errs.ErrNotFound.
func (s *Store) KeptSecret(ctx context.Context, name string) (string, error) {
	value := ""
	found, err := one(ctx, s.eng, []any{&value}, `SELECT value FROM secrets WHERE name = $1`, name)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return value, err
}

// KeepSecret stores a value under the name, instead of the one before.
func (s *Store) KeepSecret(ctx context.Context, name, value string) error {
	return s.eng.write(ctx, func(x *tx) error {
		x.exec(`INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, created_at = excluded.created_at`,
			name, value, micros(s.now()))
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
