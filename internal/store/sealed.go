package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/secret"
)

// sealedTable is a table with columns whose values are encrypted, if there is a key.
type sealedTable struct {
	name string
	key  []string // its primary key, which the purpose of a value has
	// columns are empty or a secret. Without a key file they are not encrypted.
	columns []string
	what    string // what they are, for people
	// about are columns that describe the secret, with their values if there is none.
	about map[string]any
	// always is set if the columns are never stored without a key.
	always bool
}

// sealedTables has every column with a secret that the server must be able to read. Secrets that it
// only compares, such as keys and passwords, are stored as hashes.
var sealedTables = []sealedTable{
	{
		name: "push_configs", key: []string{"org_id", "uid", "id"}, columns: []string{"token", "credentials"},
		what: "credentials of push configurations",
	},
	{
		name: "relays", key: []string{"org_id", "agent_id"}, columns: []string{"credential"}, what: "credentials of relays",
		about: map[string]any{"credential_type": "", "credential_set_at": int64(0)}, always: true,
	},
	{name: "secrets", key: []string{"name"}, columns: []string{"value"}, what: "private keys of the server"},
	{
		name: "webhooks", key: []string{"org_id", "id"}, columns: []string{"secret", "old_secret", "private_key"},
		what: "signing keys of webhooks",
	},
}

// Names in the table secrets whose values are not secret.
const (
	secretPlatform = "platform_id"
	secretSealed   = "sealed" // see Store.SealAll
)

func isOpen(table string, key []string) bool {
	return table == "secrets" && (key[0] == secretPlatform || key[0] == secretSealed)
}

// seal returns what to store for a value. Without keys that is the value itself.
func (h *hooks) seal(purpose, plain string) (string, error) {
	if plain == "" {
		return "", nil
	}
	if h.keys.Current() != "" {
		return h.keys.Seal(purpose, []byte(plain))
	}
	if _, sealed := secret.KeyOf(plain); sealed { // it could not be told from an encrypted value
		return "", errs.New(errs.Invalid, "secrets.reserved", "a token or credential must not have the form of an encrypted "+
			"value of this server; choose another one")
	}
	return plain, nil
}

// unseal returns the value of what seal has returned, now or before there were keys.
func (h *hooks) unseal(purpose, stored string) (string, error) {
	if _, sealed := secret.KeyOf(stored); !sealed {
		return stored, nil
	}
	plain, err := h.keys.Open(purpose, stored)
	return string(plain), err
}

// unsealAll replaces values by what unseal returns.
func (h *hooks) unsealAll(purpose string, values ...*string) (err error) {
	for _, v := range values {
		if *v, err = h.unseal(purpose, *v); err != nil {
			return err
		}
	}
	return nil
}

func (t *sealedTable) purpose(key []string) string { return secret.Purpose(t.name, key...) }

// sealedRow is a row of a sealedTable.
type sealedRow struct {
	key, values []string
}

// sealedPage is the number of rows that one query reads and one write changes.
const sealedPage = 500

// page returns the rows after a key, in the order of their keys.
func (t *sealedTable) page(ctx context.Context, r reader, after []string) ([]sealedRow, error) {
	columns := slices.Concat(t.key, t.columns)
	where, args := "", []any{}
	if after != nil {
		where = ` WHERE (` + strings.Join(t.key, ", ") + `) > (` + marks(len(t.key)) + `)`
		for _, k := range after {
			args = append(args, k)
		}
	}
	var out []sealedRow
	err := each(ctx, r, func(r rows) error {
		texts := make([]string, len(columns))
		dest := make([]any, len(columns))
		for i := range texts {
			dest[i] = &texts[i]
		}
		err := r.Scan(dest...)
		out = append(out, sealedRow{texts[:len(t.key)], texts[len(t.key):]})
		return err
	}, `SELECT `+strings.Join(columns, ", ")+` FROM `+t.name+where+` ORDER BY `+strings.Join(t.key, ", ")+limit(sealedPage),
		args...)
	return out, err
}

// pages calls fn for all rows with a secret, some hundred at a time.
func (t *sealedTable) pages(ctx context.Context, r reader, fn func([]sealedRow) error) error {
	var after []string
	for {
		page, err := t.page(ctx, r, after)
		if err != nil {
			return fmt.Errorf("read the table %s: %w", t.name, err)
		}
		if len(page) == 0 {
			return nil
		}
		after = page[len(page)-1].key
		secrets := slices.DeleteFunc(page, func(row sealedRow) bool { return isOpen(t.name, row.key) })
		if err := fn(secrets); err != nil {
			return err
		}
	}
}

// SealedUse counts the secrets of a store by table and by the id of their key, which is empty for
// those that are not encrypted.
type SealedUse map[string]map[string]int64

// What describes the secrets of a table for people.
func (u SealedUse) What(table string) string {
	for _, t := range sealedTables {
		if t.name == table {
			return t.what
		}
	}
	return table
}

// Keys returns the ids of the keys in use.
func (u SealedUse) Keys() []string {
	all := map[string]bool{}
	for _, keys := range u {
		for id := range keys {
			all[id] = true
		}
	}
	delete(all, "")
	return slices.Sorted(maps.Keys(all))
}

// Count returns the number of secrets under a key.
func (u SealedUse) Count(key string) (n int64) {
	for _, keys := range u {
		n += keys[key]
	}
	return n
}

func sealedUse(ctx context.Context, r reader, tables []string) (SealedUse, error) {
	out := SealedUse{}
	for i := range sealedTables {
		t := &sealedTables[i]
		if !slices.Contains(tables, t.name) { // the schema is older
			continue
		}
		out[t.name] = map[string]int64{}
		if err := t.pages(ctx, r, func(page []sealedRow) error {
			for _, row := range page {
				for _, v := range row.values {
					if id, _ := secret.KeyOf(v); v != "" {
						out[t.name][id]++
					}
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// SealedUse reads which keys the secrets of the store are encrypted under.
func (s *Snapshot) SealedUse(ctx context.Context) (SealedUse, error) {
	tables, err := strs(ctx, s.reader, s.form.tables)
	if err != nil {
		return nil, err
	}
	return sealedUse(ctx, s.reader, tables)
}

// OrgSecrets counts the secrets of an org.
func (s *Snapshot) OrgSecrets(ctx context.Context, org string) (int64, error) {
	tables, err := strs(ctx, s.reader, s.form.tables)
	total := int64(0)
	for _, t := range sealedTables {
		if err != nil || t.key[0] != "org_id" || !slices.Contains(tables, t.name) {
			continue
		}
		n, parts := int64(0), make([]string, len(t.columns))
		for i, c := range t.columns {
			parts[i] = `CASE WHEN ` + c + ` <> '' THEN 1 ELSE 0 END`
		}
		_, err = one(ctx, s.reader, []any{&n},
			`SELECT coalesce(sum(`+strings.Join(parts, " + ")+`), 0) FROM `+t.name+` WHERE org_id = $1`, org)
		total += n
	}
	return total, err
}

// SealedUse reads which keys the secrets are encrypted under.
func (s *Store) SealedUse(ctx context.Context) (SealedUse, error) {
	var all []string
	for _, t := range sealedTables {
		all = append(all, t.name)
	}
	return sealedUse(ctx, s.eng, all)
}
