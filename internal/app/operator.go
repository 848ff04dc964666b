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
	Identity *identity.Operator
	Agents   *agent.Operator
	// Accounts makes links; it cannot check passwords.
	Accounts *account.Accounts
	store    *store.Store
}

// OpenOperator opens a store. It sets up an empty one, but never migrates: a server may
// be using the store. Unless create is set, a missing data folder is an error.
func OpenOperator(ctx context.Context, cfg config.Store, create bool) (*Operator, error) {
	if !create {
		if err := mustExist(cfg); err != nil {
			return nil, err
		}
	}
	s, err := openStore(ctx, cfg, store.Options{Migrate: store.MigrateNever})
	if err != nil {
		return nil, err
	}
	return &Operator{
		Identity: identity.NewOperator(s.Identity(), Now, newIDs(Now).next),
		Agents:   agent.NewOperator(agent.NewRegistry(s.Agents(), Now)),
		Accounts: account.New(s.Accounts(), s.Audit(), nil, Now),
		store:    s,
	}, nil
}

// Close closes the store.
func (o *Operator) Close() error { return o.store.Close() }

// Migration is what the command migrate is to do.
type Migration struct {
	Force  bool // also incompatible migrations, while other nodes use the store
	DryRun bool
}

// Migrate brings the schema of a store up to date, or reports what there is to do.
func Migrate(ctx context.Context, cfg config.Store, m Migration) (store.Report, error) {
	o := storeOptions(cfg, store.Options{})
	if m.DryRun {
		if err := mustExist(cfg); err != nil {
			return store.Report{}, err
		}
		return store.Plan(ctx, o)
	}
	if m.Force {
		o.Migrate = store.MigrateByForce
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		return store.Report{}, err
	}
	return s.Migrated(), s.Close()
}

// mustExist refuses a data folder that is not there: with a mistyped --data a command
// would otherwise work on an empty store and appear to succeed.
func mustExist(cfg config.Store) error {
	if cfg.Database != "" {
		return nil
	}
	if _, err := os.Stat(cfg.Data); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no data in %s; start the server once, or name its folder with --data", cfg.Data)
	}
	return nil
}
