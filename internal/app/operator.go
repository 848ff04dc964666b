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

// Operator holds the services of the operator's commands. It takes no lock on the data
// folder, so it works while a server runs.
type Operator struct {
	Identity *identity.Operator
	Agents   *agent.Operator
	Accounts *account.Operator
	store    *store.Store
}

// OpenOperator opens a store. It initializes an empty one but never migrates, because a
// server may be using the store. Unless create is set, a missing data folder is an error.
func OpenOperator(ctx context.Context, cfg config.Store, create bool) (*Operator, error) {
	if !create {
		if err := mustExist(cfg); err != nil {
			return nil, err
		}
	}
	keys, err := openKeys(cfg)
	if err != nil {
		return nil, err
	}
	s, err := openStore(ctx, cfg, store.Options{Migrate: store.MigrateNever, Keys: keys})
	if err != nil {
		return nil, err
	}
	// The quotas are settings of the server, and do not bind the operator.
	agents := agent.NewRegistry(s.Agents(), agent.NewDirectory(s.Agents(), Now), agent.Quotas{}, Now)
	return &Operator{
		Identity: identity.NewOperator(s.IdentityStores(), Now, newIDs(Now).next),
		Agents:   agent.NewOperator(agents),
		Accounts: account.NewOperator(s.Accounts(), Now),
		store:    s,
	}, nil
}

// Close closes the store.
func (o *Operator) Close() error { return o.store.Close() }

// Migration holds the options of the command migrate.
type Migration struct {
	Force  bool // run incompatible migrations even while other nodes use the store
	DryRun bool
}

// Migrate brings the schema of a store up to date. With DryRun it only reports the pending
// migrations.
func Migrate(ctx context.Context, cfg config.Store, m Migration) (store.Report, error) {
	if err := mustExist(cfg); err != nil {
		return store.Report{}, err
	}
	o := storeOptions(cfg, store.Options{})
	if m.DryRun {
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

// mustExist returns an error if the data folder does not exist. Otherwise a command with a
// mistyped --data would work on an empty store and appear to succeed.
func mustExist(cfg config.Store) error {
	if cfg.Database != "" {
		return nil
	}
	if _, err := os.Stat(cfg.Data); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data folder %q not found; start the server once (parley serve), or name its folder with --data", cfg.Data)
	}
	return nil
}
