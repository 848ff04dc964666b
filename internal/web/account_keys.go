package web

import (
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	ownKeysPath = "/account/keys"
	endOwnKey   = ownKeysPath + "/{id}/end"
	newOwnKey   = ownKeysPath + "/{id}/rotate"
)

// ownKey is the view of one of the member's own keys.
type ownKey struct {
	identity.Key
	Rights []string // in words
	Only   []string // agents that it is restricted to; empty: all
	Admin  bool     // it has svc:admin:admin
	WhyNot string   // why it cannot be rotated; empty if it can
	Rotate string   // URL of the form
}

// ownKeyForm has the values of the form for a new key.
type ownKeyForm struct {
	Name    string
	Rights  []scopeBox // scopes that the member can give to a key
	Expires string
}

// ownKeys is the section of the account page with the member's keys.
type ownKeys struct {
	List     []ownKey
	More     bool // there are more keys than shown
	Form     ownKeyForm
	Expiries []expiry
	Overlaps []overlap
	Made     *identity.Key // the new key
	Secret   *secret       // of the new key
}

const shownOwnKeys = 50

// findOwnKeys lists the member's live keys.
func (v *visit) findOwnKeys() (ownKeys, error) {
	out := ownKeys{Form: v.ownKeyForm(), Overlaps: overlaps()}
	out.Expiries = expiriesWith(out.Form.Expires)
	a, err := v.access(identity.ManageOwnCredentials)
	if err != nil {
		return out, err
	}
	list, err := v.OrgAdmin.OwnKeys(v.r.Context(), a, identity.KeyFilter{
		State: identity.KeyLive,
		Limit: shownOwnKeys + 1,
	})
	if err != nil {
		return out, err
	}
	if out.More = len(list) > shownOwnKeys; out.More {
		list = list[:shownOwnKeys]
	}
	for i := range list {
		k := ownKey{
			Key: list[i], Admin: list[i].Scopes.Has(identity.Admin), WhyNot: v.whyNotRotate(&list[i]),
			Rotate: strings.Replace(newOwnKey, "{id}", list[i].ID, 1),
		}
		for _, w := range inWords(k.Scopes).Rights {
			k.Rights = append(k.Rights, w.Yours)
		}
		k.Only = restrictions(k.Scopes)
		out.List = append(out.List, k)
	}
	return out, nil
}

// ownKeyForm returns the values of the form. By default, reading and writing are selected.
func (v *visit) ownKeyForm() ownKeyForm {
	sent := v.r.URL.Path == ownKeysPath
	f := ownKeyForm{Name: v.value("name"), Expires: v.value("expires")}
	if !sent {
		f.Name, f.Expires = "", defaultExpiry
	}
	for _, w := range inWords(v.caller.Scopes).Rights {
		checked := w.Scope == identity.TasksRead || w.Scope == identity.TasksWrite
		if sent {
			checked = slices.Contains(v.r.PostForm["scopes"], string(w.Scope))
		}
		f.Rights = append(f.Rights, scopeBox{w, checked})
	}
	return f
}

// createOwnKey creates a key of the member. Only this response contains its secret.
func (v *visit) createOwnKey() error {
	a, err := v.access(identity.ManageOwnCredentials)
	if err != nil {
		return err
	}
	r := identity.KeyRequest{Name: v.value("name"), Scopes: v.r.PostForm["scopes"]}
	if r.ExpiresAt, err = endOf(v.value("expires"), v.Now()); err == nil {
		err = v.confirmAdmin(slices.Contains(r.Scopes, string(identity.Admin)))
	}
	if err != nil {
		return v.showAccount(nil, v.audited(identity.KeyCreate, v.member.Ref(), err))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	k, value, err := v.OrgAdmin.CreateOwnKey(ctx, a, r)
	if err != nil && !sealed(err) {
		return v.showAccount(nil, v.audited(identity.KeyCreate, v.member.Ref(), err))
	}
	made := v.newSecret("key", value, once)
	return v.showAccount(func(view *accountView) { view.Keys.Made, view.Keys.Secret = &k, made }, nil)
}

// rotateOwnKey rotates one of the member's keys, and shows the new secret once.
func (v *visit) rotateOwnKey() error {
	id := v.r.PathValue("id")
	if !identity.ValidKeyID(id) {
		return errs.ErrNotFound
	}
	a, err := v.access(identity.ManageOwnCredentials)
	if err != nil {
		return err
	}
	old, err := v.OrgAdmin.OwnKey(v.r.Context(), a, id)
	if err != nil {
		return v.audited(identity.KeyRotate, id, err)
	}
	d, err := v.overlapOf()
	if err == nil {
		err = v.confirmAdmin(old.Scopes.Has(identity.Admin))
	}
	if err != nil {
		return v.showAccount(nil, v.audited(identity.KeyRotate, id, err))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	k, value, err := v.OrgAdmin.RotateOwnKey(ctx, a, id, d)
	if err != nil && !sealed(err) {
		return v.showAccount(nil, v.audited(identity.KeyRotate, id, err))
	}
	made := v.newSecret("key", value, once)
	return v.showAccount(func(view *accountView) { view.Keys.Made, view.Keys.Secret = &k, made }, nil)
}

// endOwnKey revokes one of the member's keys.
func (v *visit) endOwnKey() error {
	a, err := v.access(identity.ManageOwnCredentials)
	if err != nil {
		return err
	}
	k, err := v.OrgAdmin.RevokeOwnKey(v.r.Context(), a, v.r.PathValue("id"))
	if err != nil {
		return v.audited(identity.KeyRevoke, v.r.PathValue("id"), err)
	}
	return v.done(v.accountPath()+"#keys", "The key "+k.Prefix+"… has ended.")
}
