package store

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// PutRequest implements authserver.Requests.
func (s OAuth) PutRequest(ctx context.Context, id identity.Hash, data []byte, expires time.Time) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`INSERT INTO oauth_requests (hash, data, expires_at) VALUES ($1, $2, $3)
			ON CONFLICT (hash) DO UPDATE SET data = excluded.data, expires_at = excluded.expires_at`,
			hashText(id), base64.StdEncoding.EncodeToString(data), micros(expires))
		return nil
	})
}

// Request implements authserver.Requests.
func (s OAuth) Request(ctx context.Context, id identity.Hash, now time.Time) ([]byte, error) {
	var text string
	found, err := one(ctx, s.eng, []any{&text}, `SELECT data FROM oauth_requests
		WHERE hash = $1 AND expires_at > $2`, hashText(id), micros(now))
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// EndRequest implements authserver.Requests.
func (s OAuth) EndRequest(ctx context.Context, id identity.Hash) error {
	return s.eng.write(ctx, func(t *tx) error {
		there, err := t.exists(ctx, `SELECT 1 FROM oauth_requests WHERE hash = $1`+t.d.forUpdate, hashText(id))
		if err == nil && !there {
			err = errs.ErrNotFound
		}
		if err != nil {
			return err
		}
		t.exec(`DELETE FROM oauth_requests WHERE hash = $1`, hashText(id))
		return nil
	})
}
