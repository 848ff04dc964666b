package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/store"
)

// SecretsStatus describes the keys of a store and what is encrypted under them.
type SecretsStatus struct {
	File  string      // empty: no key file is given
	Keys  secret.Keys // the current one first
	Use   store.SealedUse
	Nodes []store.Node // running servers of a PostgreSQL store
}

// Missing returns the ids of keys that are in use and not in the file.
func (s *SecretsStatus) Missing() []string {
	return slices.DeleteFunc(s.Use.Keys(), s.Keys.Has)
}

// Secrets reads the status of the secrets of a store.
func Secrets(ctx context.Context, cfg config.Store) (SecretsStatus, error) {
	var out SecretsStatus
	err := withSecrets(ctx, cfg, func(s *store.Store, keys *secret.Keyring) (err error) {
		out.File, out.Keys = cfg.KeyFile(), keys.Keys()
		if out.Use, err = s.SealedUse(ctx); err == nil {
			out.Nodes, err = s.Nodes(ctx)
		}
		return err
	})
	return out, err
}

func withSecrets(ctx context.Context, cfg config.Store, do func(*store.Store, *secret.Keyring) error) error {
	if err := mustExist(cfg); err != nil {
		return err
	}
	keys, err := openKeys(cfg)
	if err != nil {
		return err
	}
	s, err := openStore(ctx, cfg, store.Options{Migrate: store.MigrateNever, Keys: keys})
	if err != nil {
		return err
	}
	return errors.Join(do(s, keys), s.Close())
}

var errNoKeyFile = errs.New(errs.Conflict, secret.CodeNoKey, "name the key file with --secret-key-file; "+
	"\"parley secrets add-key\" makes one")

// AddKey adds a key to the key file, which it makes if there is none. An added key encrypts nothing
// until RotateSecrets. It needs no store.
func AddKey(cfg config.Store) (keys secret.Keys, made bool, err error) {
	path := cfg.KeyFile()
	if path == "" {
		return nil, false, errNoKeyFile
	}
	switch _, err := secret.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		keys := secret.Keys{secret.NewKey(Now())}
		return keys, true, secret.CreateFile(path, keys)
	case err != nil:
		return nil, false, err
	}
	keys, err = secret.EditFile(path, func(ks secret.Keys) (secret.Keys, error) {
		if k, ok := ks.Pending(); ok {
			return nil, errs.New(errs.Conflict, "secrets.pending", "key %s was added before and is not current yet; copy the file "+
				"to all servers and run \"parley secrets rotate\"", k.ID)
		}
		return ks.Add(newerKey(ks)), nil
	})
	return keys, false, err
}

// newerKey returns a key whose time is after that of all others, whatever the clock says.
func newerKey(ks secret.Keys) secret.Key {
	at := Now()
	for i := range ks {
		if next := ks[i].CreatedAt.Add(time.Second); at.Before(next) {
			at = next
		}
	}
	return secret.NewKey(at)
}

// Rotated is the outcome of RotateSecrets.
type Rotated struct {
	Key     string // the current key
	Values  int64  // that were encrypted again
	Dropped []string
	Kept    []string
	// Behind are servers that still encrypt with an older key.
	Behind []store.Node
}

// rotateWait is how long RotateSecrets waits for servers to read the key file.
const rotateWait = 10 * time.Second

// RotateSecrets makes the key that AddKey has added current, or a new one, encrypts all secrets under
// it, and removes the keys that nothing uses any more, unless keep is set. Servers may use the store.
//
// It can be repeated after an interruption: every value can be decrypted at any moment, because a
// key is in the file of all servers before a value is encrypted under it, and is removed when no
// value and no server uses it.
func RotateSecrets(ctx context.Context, cfg config.Store, keep bool, progress func(done int64)) (Rotated, error) {
	return rotateSecrets(ctx, cfg, keep, rotateWait, progress)
}

func rotateSecrets(
	ctx context.Context, cfg config.Store, keep bool, patience time.Duration, progress func(done int64),
) (out Rotated, err error) {
	path := cfg.KeyFile()
	if path == "" {
		return out, errNoKeyFile
	}
	err = withSecrets(ctx, cfg, func(s *store.Store, keys *secret.Keyring) error {
		if len(keys.Keys()) == 0 {
			return errNoKeyFile
		}
		r := &rotation{store: s, keys: keys, cfg: cfg, patience: patience}
		if err := r.begin(ctx); err != nil {
			return err
		}
		if out.Values, err = s.Reseal(ctx, progress); err != nil {
			return err
		}
		if out.Behind, err = r.wait(ctx, func(n store.Node) bool { return len(n.Keys) > 0 && n.Keys[0] == r.fresh }); err != nil {
			return err
		}
		// What servers have written with the old key meanwhile.
		more, err := s.Reseal(ctx, progress)
		if err != nil {
			return err
		}
		out.Key, out.Values = r.fresh, out.Values+more
		return r.drop(ctx, keep, &out)
	})
	return out, err
}

// rotation is a running RotateSecrets.
type rotation struct {
	store    *store.Store
	keys     *secret.Keyring
	cfg      config.Store
	patience time.Duration // with servers that have not read the file
	fresh    string        // id of the new key
}

// begin makes a new key current that all servers know.
func (r *rotation) begin(ctx context.Context) error {
	use, err := r.store.SealedUse(ctx)
	if err != nil {
		return err
	}
	for _, id := range use.Keys() {
		if !r.keys.Keys().Has(id) {
			return errLostKey(r.cfg, id)
		}
	}
	keys, err := secret.EditFile(r.keys.Path(), func(ks secret.Keys) (secret.Keys, error) {
		if _, ok := ks.Pending(); ok {
			return ks, nil
		}
		return ks.Add(newerKey(ks)), nil
	})
	if err != nil {
		return err
	}
	pending, _ := keys.Pending()
	r.fresh = pending.ID
	behind, err := r.wait(ctx, func(n store.Node) bool { return slices.Contains(n.Keys, r.fresh) })
	if err != nil {
		return err
	}
	if len(behind) > 0 {
		return fmt.Errorf("key %s is in the file %s, but not on these servers: %s; copy the file to them and run the command again",
			r.fresh, r.keys.Path(), nodeNames(behind))
	}
	if _, err := secret.EditFile(r.keys.Path(), func(ks secret.Keys) (secret.Keys, error) {
		if p, ok := ks.Pending(); !ok || p.ID != r.fresh {
			return nil, errors.New("another command has changed the key file; try again")
		}
		return ks.Rotate(secret.Key{}), nil
	}); err != nil {
		return err
	}
	return r.keys.Refresh()
}

// wait waits until all running servers are ready, and returns those that are not in time. A server of
// a SQLite store tells nothing, but reads the file every secret.Every.
func (r *rotation) wait(ctx context.Context, ready func(store.Node) bool) ([]store.Node, error) {
	if r.cfg.Database == "" {
		if store.InUse(r.cfg.Data) {
			return nil, sleep(ctx, secret.Every+time.Second)
		}
		return nil, nil
	}
	for end := time.Now().Add(r.patience); ; {
		nodes, err := r.store.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		behind := slices.DeleteFunc(nodes, ready)
		if len(behind) == 0 || time.Now().After(end) {
			return behind, nil
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drop removes the keys that nothing uses.
func (r *rotation) drop(ctx context.Context, keep bool, out *Rotated) error {
	use, err := r.store.SealedUse(ctx)
	if err != nil {
		return err
	}
	if !keep && len(out.Behind) == 0 {
		out.Dropped = slices.DeleteFunc(r.keys.Keys().IDs()[1:], func(id string) bool { return use.Count(id) > 0 })
	}
	if len(out.Dropped) > 0 {
		if _, err := secret.EditFile(r.keys.Path(), func(ks secret.Keys) (secret.Keys, error) {
			return ks.Without(out.Dropped), nil
		}); err != nil {
			return err
		}
	}
	out.Kept = slices.DeleteFunc(r.keys.Keys().IDs()[1:], func(id string) bool { return slices.Contains(out.Dropped, id) })
	return nil
}

func nodeNames(nodes []store.Node) string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.String()
	}
	return strings.Join(out, ", ")
}

// DropLost removes the secrets that cannot be decrypted, because their key is lost. It returns how
// many rows of each table it has changed. The server starts again afterwards.
func DropLost(ctx context.Context, cfg config.Store) (out map[string]int64, err error) {
	err = withSecrets(ctx, cfg, func(s *store.Store, keys *secret.Keyring) error {
		if keys != nil && len(keys.Keys()) == 0 {
			if err := keys.Make(); err != nil {
				return err
			}
		}
		out, err = s.DropLost(ctx)
		return err
	})
	return out, err
}
