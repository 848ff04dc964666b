package web

import (
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// keyOne is the page of a key.
type keyOne struct {
	Key      keyRow
	Secret   *secret // only in the response that created it
	Server   string  // URL of the API, for examples
	Serves   string  // agent of a worker's key, for examples
	Pair     *keyPair
	WhyNot   string // why it cannot be rotated; empty if it can
	Overlaps []overlap
	Revoke   bool // the form to revoke it is open
	Audit    string
}

// keyPair is a key and the key that replaced it.
type keyPair struct{ Old, New keyRow }

// keyPage shows a key.
func (v *visit) keyPage() error {
	_, k, err := v.keyInPath(identity.ReadKeys)
	if err != nil {
		return err
	}
	return v.showKey(http.StatusOK, k, nil, nil)
}

// keyInPath returns the key in the path, if the member may do the action.
func (v *visit) keyInPath(action identity.Action) (identity.Access, identity.Key, error) {
	a, err := v.access(action)
	if err != nil {
		return a, identity.Key{}, err
	}
	id := v.r.PathValue("id")
	if !identity.ValidKeyID(id) {
		return a, identity.Key{}, errs.ErrNotFound
	}
	k, err := v.OrgAdmin.Key(v.r.Context(), a, id)
	return a, k, err
}

// showKey shows a key, with its secret if it was just created.
func (v *visit) showKey(status int, k identity.Key, s *secret, problem error) error {
	now := v.Now()
	out := keyOne{
		Key: newKeyRow(&k, now), Secret: s, Server: v.PublicURL, WhyNot: v.whyNotRotate(&k), Overlaps: overlaps(),
		Revoke: v.r.URL.Query().Has("revoke"), Audit: link(v.base()+"/audit", "actor", k.Principal.Ref()),
	}
	if k.Scopes.Has(identity.A2AServe) && k.Principal.Kind == identity.Agent {
		out.Serves = k.Principal.ID
	}
	var err error
	if out.Pair, err = v.keyPair(&k); err != nil {
		return err
	}
	return renderForm(v, status, "key", out.Key.Title, out, problem)
}

// whyNotRotate returns why a key cannot be rotated. It follows the rules of OrgAdmin.RotateKey.
func (v *visit) whyNotRotate(k *identity.Key) string {
	switch {
	case k.Principal.Kind == identity.User && k.Principal != v.member.Principal:
		return "It belongs to another person; only that person can rotate it."
	case k.Disabled:
		return k.Principal.Ref() + " is disabled; enable it first."
	case !k.Live(v.Now()):
		return "It has ended; make a new key instead."
	case k.ReplacedBy != "":
		return "It was rotated already; rotate its successor instead."
	}
	return ""
}

// keyPair finds the key that replaced this one, or that this one replaced.
func (v *visit) keyPair(k *identity.Key) (*keyPair, error) {
	a, err := v.access(identity.ReadKeys)
	if err != nil {
		return nil, err
	}
	ctx, now := v.r.Context(), v.Now()
	if k.ReplacedBy != "" {
		next, err := v.OrgAdmin.Key(ctx, a, k.ReplacedBy)
		if err != nil {
			return nil, err
		}
		return &keyPair{newKeyRow(k, now), newKeyRow(&next, now)}, nil
	}
	if k.Replaces == "" {
		return nil, nil
	}
	old, err := v.OrgAdmin.Key(ctx, a, k.Replaces)
	if err != nil {
		return nil, err
	}
	return &keyPair{newKeyRow(&old, now), newKeyRow(k, now)}, nil
}

// rotateKey rotates a key, and shows the new secret once.
func (v *visit) rotateKey() error {
	a, old, err := v.keyInPath(identity.ManageKeys)
	if err != nil {
		return v.audited(identity.KeyRotate, v.r.PathValue("id"), err)
	}
	d, err := v.overlapOf()
	if err == nil {
		err = v.confirmAdmin(old.Scopes.Has(identity.Admin))
	}
	if err != nil {
		return v.showKey(http.StatusOK, old, nil, v.audited(identity.KeyRotate, old.ID, err))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	k, value, err := v.OrgAdmin.RotateKey(ctx, a, old.ID, d)
	if err != nil && !sealed(err) {
		return v.showKey(http.StatusOK, old, nil, v.audited(identity.KeyRotate, old.ID, err))
	}
	return v.showKey(http.StatusCreated, k, v.newSecret("key", value, once), nil)
}

// revokeKey revokes a key. Revoking it again changes nothing.
func (v *visit) revokeKey() error {
	a, old, err := v.keyInPath(identity.ManageKeys)
	if err != nil {
		return v.audited(identity.KeyRevoke, v.r.PathValue("id"), err)
	}
	k, err := v.OrgAdmin.RevokeKey(v.r.Context(), a, old.ID)
	if err != nil {
		return v.showKey(http.StatusOK, old, nil, v.audited(identity.KeyRevoke, old.ID, err))
	}
	row := newKeyRow(&k, v.Now())
	return v.back(v.base()+"/keys/"+k.ID, "The key “"+row.Title+"” was revoked. It stops working within seconds.")
}
