package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/store"
)

// ExportOrg writes all data of one org, as Backup does with a store. Without secrets, it lacks keys,
// passwords and all else with which callers get in. Secrets are in it as they are, not encrypted, because
// the org may move to a store with other keys. An unknown org is NotFound.
func ExportOrg(
	ctx context.Context, cfg config.Store, org string, secrets bool, to BackupTo, p Progress,
) (BackedUp, error) {
	keys, err := openKeys(cfg)
	if err != nil {
		return BackedUp{}, err
	}
	s, err := store.OpenSnapshot(ctx, storeOptions(cfg, store.Options{Keys: keys}))
	if err != nil {
		return BackedUp{}, err
	}
	defer func() { _ = s.Close() }()
	if err := s.FindOrg(ctx, org); err != nil {
		return BackedUp{}, err
	}
	h := backup.Header{Org: org}
	if secrets {
		if h.OpenSecrets, err = s.OrgSecrets(ctx, org); err != nil {
			return BackedUp{}, err
		}
	}
	to.prefix = "org-" + org
	return to.save(s, h, func(b *backup.Writer) error { return s.WriteOrg(ctx, b, org, secrets, p) })
}

// OrgImport says how an org is imported.
type OrgImport struct {
	As             string // the id that it gets; empty: that of the export
	WithoutSecrets bool
	Create         bool // make the store, if there is none
}

// Imported describes an org that was imported.
type Imported struct {
	Restored
	Org identity.Org
}

// ImportOrg adds the org of an export to a store, which may have other orgs and be in use.
func ImportOrg(ctx context.Context, cfg config.Store, from io.Reader, how OrgImport, p Progress) (Imported, error) {
	if how.As != "" && !identity.ValidOrgID(how.As) {
		return Imported{}, errs.New(errs.Invalid, "identity.bad_org",
			"%q cannot be the id of an org; use 1 to 63 of a-z, 0-9 and '-', not starting with '-'", how.As)
	}
	if !how.Create {
		if err := mustExist(cfg); err != nil {
			return Imported{}, err
		}
	}
	keys, err := openKeys(cfg)
	if err != nil {
		return Imported{}, err
	}
	r, err := backup.NewReader(from)
	if err != nil {
		return Imported{}, err
	}
	defer r.Close()
	h := r.Header()
	if h.Org != "" && !identity.ValidOrgID(h.Org) { // the store refuses a back-up of all orgs
		return Imported{}, errs.New(errs.Invalid, "org.import_changed",
			"the export is of an org with the id %q, which cannot exist: it was changed by hand", h.Org)
	}
	detail := fmt.Sprintf("exported as %q at %s by parley %s", h.Org, h.CreatedAt.Format(time.RFC3339), h.Version)
	out := Imported{Restored: Restored{Header: h, Store: StoreName(cfg)}}
	out.Org, err = store.ImportOrg(ctx, storeOptions(cfg, store.Options{Migrate: store.MigrateNever, Keys: keys}), r, store.OrgImport{
		As: how.As, WithoutSecrets: how.WithoutSecrets,
		Entry: identity.NewEntry(ctx, Now(), h.Org, identity.OrgImport, h.Org, detail),
	}, p)
	out.Summary = r.Summary()
	return out, err
}

// settleTime is how long DeleteOrg lets servers notice that all rights in the org have ended: a long
// request asks after RecheckEvery, and may get an answer that is as old as keyPoll. The rest is for the
// writes that ran then.
const settleTime = httpx.RecheckEvery + 2*keyPoll

// DeleteOrg deletes an org and everything of it, also while servers use the store. It continues a
// deletion that was interrupted. If there is no such org, the error is NotFound.
func DeleteOrg(ctx context.Context, cfg config.Store, org string, p Progress) error {
	if err := mustExist(cfg); err != nil {
		return err
	}
	return store.DeleteOrg(ctx, storeOptions(cfg, store.Options{Migrate: store.MigrateNever}), org, store.OrgDeletion{
		Entry: identity.NewEntry(ctx, Now(), "", identity.OrgDelete, org, ""), Settle: settleTime,
	}, p)
}
