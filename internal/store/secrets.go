package store

import (
	"context"
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
