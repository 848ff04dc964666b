package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// plain is a Hasher whose hashes show the password.
type plain struct{}

func (plain) Hash(_ context.Context, p string) (string, error)    { return "plain:" + p, nil }
func (plain) Verify(_ context.Context, h, p string) (bool, error) { return h == "plain:"+p, nil }
func (plain) Decoy() string                                       { return "nobody's" }

func (w *world) people() *account.Accounts {
	return account.New(w.store.Accounts(), w.store.Audit(), plain{}, w.now)
}

// newLink makes a link as the operator does.
func (w *world) newLink(p identity.Principal) (string, error) {
	token, _, err := account.NewOperator(w.store.Accounts(), w.now).NewLink(w.Context(), p)
	return token, err
}

// setPassword gives a user a password, as if the user had chosen it.
func (w *world) setPassword(p identity.Principal, password string) {
	w.Helper()
	hash, err := w.people().HashPassword(w.Context(), p, password)
	w.must(err)
	e := identity.NewEntry(w.Context(), w.now(), p.Org, account.PasswordChange, p.Ref(), "")
	_, err = w.store.Accounts().SetPassword(w.Context(), p, hash, w.now(), e)
	w.must(err)
}

const goodPassword = "correct horse battery"

func testPasswords(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	p, twin := principal("user:ann"), identity.Principal{Org: "other", Kind: identity.User, ID: "ann"}

	_, err := people.Login(ctx, "acme", "ann", goodPassword)
	w.want(err, errs.Unauthenticated) // there is no default password
	token, err := w.newLink(p)
	w.must(err)
	_, err = people.UseLink(ctx, token, "short")
	w.want(err, errs.Invalid)
	first, err := people.UseLink(ctx, token, goodPassword)
	w.must(err)
	_, err = people.UseLink(ctx, token, goodPassword)
	w.want(err, errs.NotFound)
	_, err = people.Resume(ctx, "acme", "ann", first.Generation)
	w.must(err)

	in, err := people.Login(ctx, "acme", "ann", goodPassword)
	w.must(err)
	if !in.Member.Admin || in.Generation != first.Generation {
		w.Errorf("signed in = %+v, want an admin with generation %d", in, first.Generation)
	}
	for _, wrong := range [][3]string{
		{"acme", "ann", "wrong horse battery"},
		{"acme", "nobody", goodPassword},
		{"other", "ann", goodPassword},
		{"no", "ann", ""},
	} {
		_, err := people.Login(ctx, wrong[0], wrong[1], wrong[2])
		w.want(err, errs.Unauthenticated)
	}

	_, err = people.ChangePassword(ctx, p, "wrong horse battery", "another horse battery")
	w.want(err, errs.Invalid)
	second, err := people.ChangePassword(ctx, p, goodPassword, "another horse battery")
	w.must(err)
	_, err = people.Resume(ctx, "acme", "ann", first.Generation)
	w.want(err, errs.NotFound) // a new password ends the sessions
	_, err = people.Resume(ctx, "acme", "ann", second.Generation)
	w.must(err)
	w.must(people.LogoutEverywhere(ctx, p))
	_, err = people.Resume(ctx, "acme", "ann", second.Generation)
	w.want(err, errs.NotFound)

	// A user of the same name in another org is not affected.
	w.setPassword(twin, "some other password")
	third, err := people.Login(ctx, "acme", "ann", "another horse battery")
	w.must(err)

	// Disabling ends the sessions, and enabling does not bring them back.
	_, err = m.CreateMember(ctx, ann, identity.User, "bob", "", true)
	w.must(err)
	bob := w.access("acme", "user:bob")
	yes, no := true, false
	_, err = m.UpdateMember(ctx, bob, p, identity.MemberEdit{Disabled: &yes})
	w.must(err)
	_, err = people.Login(ctx, "acme", "ann", "another horse battery")
	w.want(err, errs.Unauthenticated)
	_, err = w.newLink(p)
	w.want(err, errs.Conflict)
	_, err = m.UpdateMember(ctx, bob, p, identity.MemberEdit{Disabled: &no})
	w.must(err)
	_, err = people.Resume(ctx, "acme", "ann", third.Generation)
	w.want(err, errs.NotFound)

	// A new password invalidates links that were made before it.
	stale, err := w.newLink(p)
	w.must(err)
	_, err = people.ChangePassword(ctx, p, "another horse battery", "one more horse battery")
	w.must(err)
	_, err = people.UseLink(ctx, stale, goodPassword)
	w.want(err, errs.NotFound)

	_, err = w.newLink(principal("user:nobody"))
	w.want(err, errs.NotFound)
	old, err := w.newLink(p)
	w.must(err)
	_, err = w.newLink(p)
	w.must(err)
	_, err = people.Link(ctx, old)
	w.want(err, errs.NotFound) // replaced by a newer one

	_, actions := w.log(m, ann, identity.AuditFilter{Actor: "user:ann", Action: account.PasswordChange})
	if len(actions) != 3 {
		w.Errorf("the log has %q, want three changes of the password", actions)
	}
	entries, _ := w.log(m, ann, identity.AuditFilter{Action: account.LoginFailed})
	if len(entries) != 3 || entries[0].Outcome != identity.Refused {
		w.Errorf("failed logins = %+v, want 3, the last one refused", entries)
	}
}

func testRacingLinks(w *world) {
	w.manage()
	people := w.people()
	token, err := w.newLink(principal("user:ann"))
	w.must(err)
	if n := w.race(func() error { _, err := people.UseLink(w.Context(), token, goodPassword); return err }); n != 1 {
		w.Errorf("%d of the uses of one link succeeded, want 1", n)
	}
	token, err = w.newLink(principal("user:ann"))
	w.must(err)
	w.advance(account.LinkLifetime)
	_, err = people.UseLink(w.Context(), token, goodPassword)
	w.want(err, errs.NotFound)
}

// race runs f twenty times concurrently and counts the successes.
func (w *world) race(f func() error) int64 {
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if f() == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	return won.Load()
}

func testSessionStaysEnded(w *world) {
	ctx := w.Context()
	w.must(w.store.Sessions().Create(ctx, "t1", []byte("x"), w.now().Add(time.Hour)))
	w.must(w.store.Sessions().Delete(ctx, "t1"))
	// A request that loaded the session before it ended updates it.
	w.must(w.store.Sessions().Update(ctx, "t1", []byte("x"), w.now().Add(time.Hour)))
	if _, found, err := w.store.Sessions().Get(ctx, "t1", w.now()); found || err != nil {
		w.Errorf("ended session: found = %t, %v, want false", found, err)
	}
}

func testSessions(w *world) {
	ctx := w.Context()
	data := []byte{0, 1, 2, 0xff}
	w.must(w.store.Sessions().Create(ctx, "t1", []byte("old"), w.now().Add(time.Hour)))
	w.must(w.store.Sessions().Update(ctx, "t1", data, w.now().Add(time.Hour)))
	got, found, err := w.store.Sessions().Get(ctx, "t1", w.now())
	w.must(err)
	if !found || string(got) != string(data) {
		w.Errorf("session = %v, %t, want %v", got, found, data)
	}
	_, found, err = w.store.Sessions().Get(ctx, "t1", w.now().Add(2*time.Hour))
	w.must(err)
	if found {
		w.Error("expired session: found = true, want false")
	}
	w.must(w.store.Sessions().Delete(ctx, "t1"))
	w.must(w.store.Sessions().Delete(ctx, "t1"))
	if _, found, _ := w.store.Sessions().Get(ctx, "t1", w.now()); found {
		w.Error("deleted session: found = true, want false")
	}

	id := identity.HashSecret("request")
	w.must(w.store.OAuth().PutRequest(ctx, id, data, w.now().Add(time.Hour)))
	got, err = w.store.OAuth().Request(ctx, id, w.now())
	w.must(err)
	if string(got) != string(data) {
		w.Errorf("request = %v, want %v", got, data)
	}
	if n := w.race(func() error { return w.store.OAuth().EndRequest(ctx, id) }); n != 1 {
		w.Errorf("%d answers to one request, want 1", n)
	}
	_, err = w.store.OAuth().Request(ctx, id, w.now())
	w.want(err, errs.NotFound)
}
