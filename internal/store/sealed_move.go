package store

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/webhook"
)

// unsealer returns a function that decrypts the secrets of a row of t, or removes them, or nil if it has
// none.
func (s *Snapshot) unsealer(t *copyTable, keep bool) func(values []any) error {
	i := slices.IndexFunc(sealedTables, func(st sealedTable) bool { return st.name == t.name })
	if i < 0 {
		return nil
	}
	st, names, h := &sealedTables[i], t.names(), &hooks{keys: s.keys}
	return func(values []any) error {
		text := func(column string) string { return values[slices.Index(names, column)].(string) } // all are texts
		key := make([]string, len(st.key))
		for i, k := range st.key {
			key[i] = text(k)
		}
		if !keep {
			for c, v := range st.without() {
				values[slices.Index(names, c)] = v
			}
			return nil
		}
		for _, c := range st.columns {
			plain, err := h.unseal(st.purpose(key), text(c))
			if err != nil {
				return fmt.Errorf("%w; or export without credentials", err)
			}
			values[slices.Index(names, c)] = plain
		}
		return nil
	}
}

// without returns the values of a row that has no secret.
func (t *sealedTable) without() map[string]any {
	out := maps.Clone(t.about)
	if out == nil {
		out = map[string]any{}
	}
	for _, c := range t.columns {
		out[c] = ""
	}
	return out
}

// strip removes the secrets of all rows of an export.
func (t *sealedTable) strip(conn *liteConn) error {
	for c, v := range t.without() {
		if err := conn.exec(`UPDATE `+t.name+` SET `+c+` = $1`, v); err != nil {
			return err
		}
	}
	return nil
}

// seal encrypts the secrets of the export under the key of the store.
func (im *orgImport) seal(ctx context.Context, conn *liteConn) error {
	for i := range sealedTables {
		t := &sealedTables[i]
		if !im.secrets {
			if err := t.strip(conn); err != nil {
				return err
			}
			continue
		}
		if err := t.pages(ctx, bareLite{conn}, func(page []sealedRow) error {
			for _, row := range page {
				for i, plain := range row.values {
					if _, sealed := secret.KeyOf(plain); sealed {
						return errors.New("the export is damaged: it has encrypted secrets; use another one, or import it " +
							"without credentials")
					}
					if plain != "" && t.always && im.store.hooks.keys.Current() == "" {
						return fmt.Errorf("%w; or import it without credentials", secret.ErrNoKey())
					}
					stored, err := im.store.hooks.seal(t.purpose(row.key), plain)
					if err != nil {
						return err
					}
					if stored != plain {
						s := t.replace(row.key, t.columns[i], plain, stored)
						if err := conn.exec(s.sql, s.args...); err != nil {
							return err
						}
					}
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// lostText is the error that rows get whose secret was removed.
const lostText = "its secret was lost with the key file of the server; "

// DropLost removes the secrets that no key can decrypt any more. Webhooks get a new secret and are
// paused, push configurations are given up, and the server makes its own keys again. It returns how
// many rows of each table it has changed.
func (s *Store) DropLost(ctx context.Context) (map[string]int64, error) {
	if s.hooks.keys.Current() == "" {
		return nil, secret.ErrNoKey()
	}
	out := map[string]int64{}
	for i := range sealedTables {
		t := &sealedTables[i]
		if err := t.pages(ctx, s.eng, func(page []sealedRow) error {
			for _, row := range page {
				lost, err := s.isLost(t, row)
				if err == nil && lost {
					out[t.name]++
					err = s.drop(ctx, t, row.key)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return out, err
		}
	}
	return out, nil
}

// isLost reports whether a value of a row cannot be decrypted.
func (s *Store) isLost(t *sealedTable, row sealedRow) (bool, error) {
	for _, v := range row.values {
		_, err := s.hooks.unseal(t.purpose(row.key), v)
		switch {
		case err == nil:
		case slices.Contains([]string{secret.CodeUnknownKey, secret.CodeDamaged}, errs.As(err).Code):
			return true, nil
		default:
			return false, err
		}
	}
	return false, nil
}

// drop removes the secrets of one row.
func (s *Store) drop(ctx context.Context, t *sealedTable, key []string) error {
	var statements []statement
	switch t.name {
	case "secrets":
		statements = []statement{{sql: `DELETE FROM secrets WHERE name = $1`, args: []any{key[0]}}}
	case "push_configs":
		statements = []statement{{
			sql: `UPDATE push_configs SET token = '', credentials = '', state = $4, due_at = 0, claimed_until = 0, claimed_by = '',
				last_error = $5 WHERE org_id = $1 AND uid = $2 AND id = $3`,
			args: []any{key[0], key[1], key[2], string(delivery.Dead), lostText + "set the configuration again"},
		}}
	case "relays":
		statements = []statement{{
			sql: `UPDATE relays SET credential = '', credential_type = '', credential_set_at = 0, problem = $3
				WHERE org_id = $1 AND agent_id = $2`,
			args: []any{key[0], key[1], lostText + "set the credential again"},
		}}
	case "webhooks":
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return fmt.Errorf("make a signing key: %w", err)
		}
		current, sealed, err := Webhooks{s.db}.seal(key[0], key[1], webhook.Secrets{Current: webhook.NewSecret(), Private: private})
		if err != nil {
			return err
		}
		statements = []statement{{
			sql: `UPDATE webhooks SET secret = $3, old_secret = '', old_secret_until = 0, private_key = $4, public_key = $5,
				state = $6, due_at = 0, claimed_until = 0, claimed_by = '', last_error = $7, version = version + 1
				WHERE org_id = $1 AND id = $2`,
			args: []any{
				key[0], key[1], current, sealed, webhook.FormatPublicKey(public), string(webhook.Paused),
				lostText + "rotate it, give the new one to the receiver, and set the webhook active",
			},
		}}
	default:
		return fmt.Errorf("the table %s is unknown", t.name)
	}
	return s.eng.write(ctx, func(x *tx) error {
		x.statements = append(x.statements, statements...)
		return nil
	})
}
