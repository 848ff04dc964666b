package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/secret"
)

// SealAll encrypts the secrets of a store from before it had keys, and does nothing if that was done
// before. Servers may use the store meanwhile. It returns the number of values that it has changed.
func (s *Store) SealAll(ctx context.Context) (int64, error) {
	if s.hooks.keys.Current() == "" {
		return 0, nil
	}
	switch _, err := s.KeptSecret(ctx, secretSealed); {
	case err == nil:
		return 0, nil
	case !errors.Is(err, errs.ErrNotFound):
		return 0, err
	}
	n, err := s.sealWhere(ctx, func(key string) bool { return key == "" }, func(int64) {})
	if err != nil {
		return n, err
	}
	if n > 0 {
		if err := s.emptyLog(Options{Dir: s.dir}); err != nil {
			return n, err
		}
	}
	return n, s.KeepSecret(ctx, secretSealed, "yes")
}

// Reseal encrypts all secrets under the current key that are not. Servers may use the store
// meanwhile. It returns the number of values that it has changed.
func (s *Store) Reseal(ctx context.Context, progress func(done int64)) (int64, error) {
	current := s.hooks.keys.Current()
	if current == "" {
		return 0, secret.ErrNoKey()
	}
	return s.sealWhere(ctx, func(key string) bool { return key != current }, progress)
}

// maxPasses limits how often sealWhere starts again because of concurrent changes.
const maxPasses = 20

// sealWhere encrypts the values under the current key whose key, empty for none, is to be replaced.
// A value that a server changes or moves to another column meanwhile is left to the next pass.
func (s *Store) sealWhere(ctx context.Context, replace func(key string) bool, progress func(done int64)) (int64, error) {
	total := int64(0)
	for range maxPasses {
		n := int64(0)
		for i := range sealedTables {
			t := &sealedTables[i]
			err := t.pages(ctx, s.eng, func(page []sealedRow) error {
				changed, err := s.sealPage(ctx, t, page, replace)
				n += changed
				progress(total + n)
				return err
			})
			if err != nil {
				return total + n, err
			}
		}
		if total += n; n == 0 {
			return total, nil
		}
	}
	return total, errors.New("secrets of the store change faster than they are encrypted; try again later")
}

// sealPage encrypts the values of some rows in one write.
func (s *Store) sealPage(
	ctx context.Context, t *sealedTable, page []sealedRow, replace func(key string) bool,
) (int64, error) {
	var statements []statement
	for _, row := range page {
		purpose := t.purpose(row.key)
		for i, stored := range row.values {
			if id, _ := secret.KeyOf(stored); stored == "" || !replace(id) {
				continue
			}
			plain, err := s.hooks.unseal(purpose, stored)
			if err != nil {
				return 0, err
			}
			fresh, err := s.hooks.seal(purpose, plain)
			if err != nil {
				return 0, err
			}
			statements = append(statements, t.replace(row.key, t.columns[i], stored, fresh))
		}
	}
	if len(statements) == 0 {
		return 0, nil
	}
	began := time.Now()
	err := s.eng.write(ctx, func(x *tx) error {
		x.statements = append(x.statements, statements...)
		return nil
	})
	if err == nil {
		err = pause(ctx, time.Since(began)) // leave room for the writes of servers
	}
	return int64(len(statements)), err
}

// pause waits, but not for long.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(min(d, 50*time.Millisecond)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replace returns the statement that replaces a value, unless it has changed.
func (t *sealedTable) replace(key []string, column, from, to string) statement {
	conditions := make([]string, 0, len(t.key)+1)
	args := make([]any, 0, len(t.key)+2)
	for i, k := range t.key {
		conditions, args = append(conditions, fmt.Sprintf("%s = $%d", k, i+1)), append(args, key[i])
	}
	n := len(args)
	conditions = append(conditions, fmt.Sprintf("%s = $%d", column, n+1))
	return statement{
		sql:  fmt.Sprintf(`UPDATE %s SET %s = $%d WHERE %s`, t.name, column, n+2, strings.Join(conditions, " AND ")),
		args: append(args, from, to),
	}
}
