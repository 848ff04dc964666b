package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/store"
)

// Operator is what the operator's commands work with: the services on an open
// store, without a server and without its lock, so that they work while one runs.
type Operator struct {
	Admins *identity.Admins
	Agents *agent.Registry
	// Accounts makes links; it cannot check passwords.
	Accounts *account.Accounts
	store    *store.Store
}

// OpenOperator opens a store. Unless create is set, a missing data folder is an
// error: with a mistyped --data a command would otherwise work on an empty store
// and appear to succeed.
func OpenOperator(ctx context.Context, cfg config.Store, create bool) (*Operator, error) {
	if cfg.Database == "" && !create {
		if _, err := os.Stat(cfg.Data); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no data in %s; start the server once, or name its folder with --data", cfg.Data)
		}
	}
	s, err := openStore(ctx, cfg, store.Options{})
	if err != nil {
		return nil, err
	}
	return &Operator{
		Admins: identity.NewAdmins(s, Now, newIDs(Now).next),
		Agents: agent.NewRegistry(s, Now),

		Accounts: account.New(s, nil, Now),
		store:    s,
	}, nil
}

// Close closes the store.
func (o *Operator) Close() error { return o.store.Close() }

// Migrate brings the schema of a store up to date and names its engine.
func Migrate(ctx context.Context, cfg config.Store) (string, error) {
	s, err := openStore(ctx, cfg, store.Options{})
	if err != nil {
		return "", err
	}
	return s.Engine(), s.Close()
}
