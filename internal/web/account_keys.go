package web

import (
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/account"
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
	Secret   string        // empty: it was shown before
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
	if err == nil && slices.Contains(r.Scopes, string(identity.Admin)) {
		err = v.confirmed()
	}
	if err != nil {
		return v.showAccount(nil, err)
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	k, secret, err := v.Manager.CreateOwnKey(ctx, v.caller, r)
	if err != nil {
		return v.showAccount(nil, err)
	}
	if once.Replayed() {
		secret = ""
	}
	return v.showAccount(func(view *accountView) { view.Keys.Made, view.Keys.Secret = &k, secret }, nil)
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

// confirmed asks for the member's password once more.
func (v *visit) confirmed() error {
	err := v.Confirm(v.r, v.member, v.r.PostFormValue("confirm"))
	if errs.As(err).Code == account.WrongPassword {
		err = errs.InvalidFields(errs.Field{
			In: errs.Body, Name: "/confirm",
			Message: "is not your password, which a key that administers the org needs",
		})
	}
	return err
}

// endOwnKey ends one of the member's keys.
func (v *visit) endOwnKey() error {
	k, err := v.Manager.RevokeOwnKey(v.r.Context(), v.caller, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.done(v.accountPath()+"#keys", "The key "+k.Prefix+"… has ended.")
}
