package store

import (
	"context"
	"encoding/base64"
	"time"
)

// Sessions stores browser sessions.
type Sessions struct{ *db }

// Sessions returns the implementation of web.Sessions.
func (s *Store) Sessions() Sessions { return Sessions{s.db} }

// Get implements web.Sessions.
func (s Sessions) Get(ctx context.Context, token string, now time.Time) ([]byte, bool, error) {
	var text string
	found, err := one(ctx, s.eng, []any{&text}, `SELECT data FROM sessions
		WHERE hash = $1 AND expires_at > $2`, token, micros(now))
	if err != nil || !found {
		return nil, false, err
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return data, err == nil, err
}

// Create implements web.Sessions.
func (s Sessions) Create(ctx context.Context, token string, data []byte, expires time.Time) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`INSERT INTO sessions (hash, data, expires_at) VALUES ($1, $2, $3)`,
			token, base64.StdEncoding.EncodeToString(data), micros(expires))
		return nil
	})
}

// Update implements web.Sessions.
func (s Sessions) Update(ctx context.Context, token string, data []byte, expires time.Time) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`UPDATE sessions SET data = $2, expires_at = $3 WHERE hash = $1`,
			token, base64.StdEncoding.EncodeToString(data), micros(expires))
		return nil
	})
}

// Delete implements web.Sessions.
func (s Sessions) Delete(ctx context.Context, token string) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`DELETE FROM sessions WHERE hash = $1`, token)
		return nil
	})
}
