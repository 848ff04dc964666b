package web

import (
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	ownKeysPath = "/account/keys"
	endOwnKey   = ownKeysPath + "/{id}/end"
)

// ownKey is a key of the member's own as the page shows it.
type ownKey struct {
	identity.Key
	Rights []string // in words
	Only   []string // agents that it reaches; empty: all
}

// ownKeyForm is what is typed to make one.
type ownKeyForm struct {
	Name    string
	Rights  []ownRight
	Expires string
}

// ownRight is a scope that the member can give to a key.
type ownRight struct {
	right
	Checked bool
}

// ownKeys is the part of the account page about keys.
type ownKeys struct {
	List     []ownKey
	More     bool // there are more than are shown
	Form     ownKeyForm
	Expiries []workerExpiry
	Made     *identity.Key // just now
	Secret   *secret       // of that one
}

const shownOwnKeys = 50

// findOwnKeys lists the member's live keys.
func (v *visit) findOwnKeys() (ownKeys, error) {
	out := ownKeys{Expiries: workerExpiries, Form: v.ownKeyForm()}
	list, err := v.Manager.OwnKeys(v.r.Context(), v.caller, identity.KeyFilter{
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
		k := ownKey{Key: list[i]}
		for _, known := range rights {
			if k.Scopes.Has(identity.Scope(known.Scope)) {
				k.Rights = append(k.Rights, known.Text)
			}
		}
		k.Only = restrictions(k.Scopes)
		out.List = append(out.List, k)
	}
	return out, nil
}

// ownKeyForm is the form: as it was sent, or with reading and writing chosen.
func (v *visit) ownKeyForm() ownKeyForm {
	sent := v.r.URL.Path == ownKeysPath
	f := ownKeyForm{Name: v.value("name"), Expires: v.value("expires")}
	if !sent {
		f.Name, f.Expires = "", defaultWorkerExpiry
	}
	for _, known := range rights {
		s := identity.Scope(known.Scope)
		if !v.caller.Scopes.Has(s) {
			continue
		}
		checked := s == identity.TasksRead || s == identity.TasksWrite
		if sent {
			checked = slices.Contains(v.r.PostForm["scopes"], known.Scope)
		}
		f.Rights = append(f.Rights, ownRight{known, checked})
	}
	return f
}

// createOwnKey makes a key that speaks for the member. Its secret is in this response only.
func (v *visit) createOwnKey() error {
	r := identity.KeyRequest{Name: v.value("name"), Scopes: v.r.PostForm["scopes"]}
	err := v.ownExpiry(&r)
	if err == nil {
		err = v.confirmAdmin(slices.Contains(r.Scopes, string(identity.Admin)))
	}
	if err != nil {
		return v.showAccount(nil, v.audited(identity.KeyCreate, v.member.Ref(), err))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	k, value, err := v.Manager.CreateOwnKey(ctx, v.caller, r)
	if err != nil && !sealed(err) {
		return v.showAccount(nil, v.audited(identity.KeyCreate, v.member.Ref(), err))
	}
	made := v.newSecret("key", value, once)
	return v.showAccount(func(view *accountView) { view.Keys.Made, view.Keys.Secret = &k, made }, nil)
}

// ownExpiry sets when the key ends.
func (v *visit) ownExpiry(r *identity.KeyRequest) error {
	for _, e := range workerExpiries {
		if e.Value != v.value("expires") {
			continue
		}
		if e.length > 0 {
			r.ExpiresAt = v.Now().Add(e.length).Truncate(time.Microsecond)
		}
		return nil
	}
	return errs.InvalidFields(errs.Field{
		In: errs.Body, Name: "/expires",
		Message: "must be one of the times in the list",
	})
}

// endOwnKey ends one of the member's keys.
func (v *visit) endOwnKey() error {
	k, err := v.Manager.RevokeOwnKey(v.r.Context(), v.caller, v.r.PathValue("id"))
	if err != nil {
		return v.audited(identity.KeyRevoke, v.r.PathValue("id"), err)
	}
	return v.done(v.accountPath()+"#keys", "The key "+k.Prefix+"… has ended.")
}
