package storetest

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// manage creates two orgs with an admin each, an agent and a service in the first org, and
// returns the admin service.
func (w *world) manage() (orgAdmin, identity.Access) {
	w.Helper()
	ctx := w.Context()
	for _, org := range []string{"acme", "other"} {
		_, err := w.operator.CreateOrg(ctx, org, "")
		w.must(err)
		_, err = w.operator.CreateMember(ctx, identity.Principal{Org: org, Kind: identity.User, ID: "ann"}, "", true)
		w.must(err)
	}
	_, err := w.operator.CreateMember(ctx, identity.Principal{Org: "acme", Kind: identity.Service, ID: "crm"}, "", false)
	w.must(err)
	for _, a := range []agent.Agent{
		{ID: "scout", Org: "acme", Name: "Scout"},
		{ID: "hidden", Org: "other", Name: "Hidden"},
		{ID: "open", Org: "other", Name: "Open", Public: true},
	} {
		_, err := w.agents.Create(ctx, a)
		w.must(err)
	}
	return w.orgAdmin(identity.Quotas{}), w.access("acme", "user:ann")
}

func (w *world) orgAdmin(q identity.Quotas) orgAdmin {
	return orgAdmin{identity.NewOrgAdmin(identity.OrgAdminOptions{
		Stores: w.store.IdentityStores(), Agents: w.agents, Quotas: q, Now: w.now, NewID: w.newID,
	})}
}

func principal(ref string) identity.Principal {
	p, err := identity.ParseRef("acme", ref)
	if err != nil {
		panic(err)
	}
	return p
}

// log returns the entries and the actions of the org's audit log, newest first.
func (w *world) log(
	m orgAdmin, a identity.Access, f identity.AuditFilter,
) (list []identity.AuditEntry, actions []string) {
	w.Helper()
	list, err := m.Audit(w.Context(), a, f)
	w.must(err)
	for _, e := range list {
		actions = append(actions, string(e.Action)+" "+e.Target)
	}
	return list, actions
}

func testManageKeys(w *world) {
	m, ann := w.manage()
	ctx := identity.WithOrigin(w.Context(), identity.Origin{RequestID: "req-1", Address: "192.0.2.7"})
	request := func(ref string, scopes ...string) identity.KeyRequest {
		return identity.KeyRequest{Principal: principal(ref), Name: "n", Scopes: scopes, CreatedBy: "forged"}
	}
	k, secret, err := m.CreateKey(ctx, ann,
		request("agent:scout", "svc:tasks:read", "agent:scout", "agent:open", "agent:*"))
	w.must(err)
	if k.CreatedBy != "user:ann" {
		w.Errorf("created by = %q, want user:ann", k.CreatedBy)
	}
	own, _, err := m.CreateKey(ctx, ann, request("user:ann", "svc:tasks:read"))
	w.must(err)
	list, _ := w.log(m, ann, identity.AuditFilter{Limit: 1})
	want := identity.AuditEntry{
		Origin: identity.Origin{Actor: "user:ann", KeyID: "key-user:ann", RequestID: "req-1", Address: "192.0.2.7"},
		ID:     list[0].ID, Org: "acme", At: list[0].At, Action: identity.KeyCreate, Target: own.ID,
		Detail: "for user:ann: svc:tasks:read", Outcome: identity.Done,
	}
	if diff := cmp.Diff(want, list[0]); diff != "" {
		w.Error(diff)
	}

	_, before := w.log(m, ann, identity.AuditFilter{})
	for name, c := range map[string]struct {
		r    identity.KeyRequest
		kind errs.Kind
		at   string
	}{
		"another user":    {request("user:bob", "svc:tasks:read"), errs.Forbidden, ""},
		"unknown service": {request("service:none", "svc:tasks:read"), errs.Invalid, "principal"},
		"another's agent": {request("agent:hidden", "svc:tasks:read"), errs.Invalid, "principal"},
		"no scope":        {request("service:crm"), errs.Invalid, "scopes"},
		"a bad scope":     {request("service:crm", "svc:tasks:read", "svc:fly"), errs.Invalid, "scopes[1]"},
		"a hidden agent":  {request("service:crm", "agent:hidden"), errs.Invalid, "scopes[0]"},
		"no such agent":   {request("service:crm", "svc:a2a:write", "agent:none"), errs.Invalid, "scopes[1]"},
		"expired": {
			identity.KeyRequest{
				Principal: principal("service:crm"), Scopes: []string{"agent:*"}, ExpiresAt: w.clock.Add(-1),
			}, errs.Invalid, "expires_at",
		},
	} {
		_, _, err := m.CreateKey(ctx, ann, c.r)
		w.want(err, c.kind)
		if f := errs.As(err).Fields; c.at != "" && (len(f) != 1 || f[0].Path.String() != c.at) {
			w.Errorf("%s: fields %+v, want %s", name, f, c.at)
		}
	}
	if _, after := w.log(m, ann, identity.AuditFilter{}); len(after) != len(before) {
		w.Errorf("log after refusals = %v, want %v", after, before)
	}

	// Pages and filters.
	for range 3 {
		_, _, err := m.CreateKey(ctx, ann, request("service:crm", "svc:tasks:read"))
		w.must(err)
	}
	keysOf := func(f identity.KeyFilter) []string {
		keys, err := m.Keys(ctx, ann, f)
		w.must(err)
		var ids []string
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		return ids
	}
	all := keysOf(identity.KeyFilter{})
	first := keysOf(identity.KeyFilter{Limit: 2})
	rest := keysOf(identity.KeyFilter{Before: first[1]})
	if diff := cmp.Diff(all, append(first, rest...)); diff != "" || len(all) != 5 {
		w.Errorf("pages have %d keys, want 5; diff to the whole list (-want +got):\n%s", len(all), diff)
	}
	if got := keysOf(identity.KeyFilter{Principal: principal("agent:scout")}); len(got) != 1 || got[0] != k.ID {
		w.Errorf("keys of scout = %v, want %s", got, k.ID)
	}
	_, err = m.RevokeKey(ctx, ann, k.ID)
	w.must(err)
	again, err := m.RevokeKey(ctx, ann, k.ID)
	w.must(err)
	got, err := m.Key(ctx, ann, k.ID)
	w.must(err)
	if diff := cmp.Diff(again, got); diff != "" || got.RevokedAt.IsZero() {
		w.Errorf("revoked at %s, want a time; diff to the first revocation (-want +got):\n%s", got.RevokedAt, diff)
	}
	if _, actions := w.log(m, ann, identity.AuditFilter{Action: identity.KeyRevoke}); len(actions) != 1 {
		w.Errorf("revocations in the log = %v, want 1", actions)
	}
	if got := keysOf(identity.KeyFilter{State: identity.KeyRevoked}); len(got) != 1 || got[0] != k.ID {
		w.Errorf("revoked keys = %v, want %s", got, k.ID)
	}
	if got := keysOf(identity.KeyFilter{State: identity.KeyLive}); len(got) != 4 {
		w.Errorf("live keys = %v, want 4", got)
	}
	entries, _ := w.log(m, ann, identity.AuditFilter{})
	for _, e := range entries {
		if strings.Contains(e.Detail+e.Target, secret) || strings.Contains(e.Detail, "parley_") {
			w.Errorf("log entry = %+v, want no secret", e)
		}
	}

	eve := w.access("other", "user:ann")
	for name, call := range map[string]func() error{
		"get":    func() error { _, err := m.Key(ctx, eve, own.ID); return err },
		"revoke": func() error { _, err := m.RevokeKey(ctx, eve, own.ID); return err },
		"rotate": func() error { _, _, err := m.RotateKey(ctx, eve, own.ID, 0); return err },
		"member": func() error { _, err := m.Member(ctx, eve, principal("user:ann")); return err },
		"update": func() error {
			yes := true
			_, err := m.UpdateMember(ctx, eve, principal("service:crm"), identity.MemberEdit{Disabled: &yes})
			return err
		},
	} {
		if err := call(); err == nil || errs.As(err) != errs.ErrNotFound {
			w.Errorf("%s across orgs = %v, want %v", name, err, errs.ErrNotFound)
		}
	}
	keys, err := m.Keys(ctx, eve, identity.KeyFilter{})
	w.must(err)
	if _, actions := w.log(m, eve, identity.AuditFilter{}); len(keys) != 0 || len(actions) != 4 { // org, ann, two agents
		w.Errorf("other org has keys %v and log %v, want no keys and 4 entries", keys, actions)
	}
	none := w.access("acme", "user:ann", identity.TasksWrite)
	_, _, err = m.CreateKey(ctx, none, request("user:ann", "svc:admin:admin"))
	w.want(err, errs.Forbidden)
}

func testRotate(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	auth := identity.NewAuthenticator(w.store.Identity(), w.now)
	works := func(secret string) bool {
		w.must(auth.Refresh(ctx))
		_, err := auth.Authenticate(ctx, secret)
		return err == nil
	}
	end := w.clock.Add(24 * time.Hour)
	old, oldSecret, err := m.CreateKey(ctx, ann, identity.KeyRequest{
		Principal: principal("service:crm"), Name: "crm", Scopes: []string{"svc:a2a:write", "agent:open"}, ExpiresAt: end,
	})
	w.must(err)
	if !works(oldSecret) {
		w.Fatal("key works = false, want true")
	}
	next, nextSecret, err := m.RotateKey(ctx, ann, old.ID, time.Hour)
	w.must(err)
	want := old
	want.ID, want.Prefix, want.CreatedAt, want.Replaces = next.ID, next.Prefix, next.CreatedAt, old.ID
	if diff := cmp.Diff(want, next); diff != "" || next.ID == old.ID || next.Prefix == old.Prefix {
		w.Errorf("new key has id %s, prefix %s, want others than the old; diff of the rest (-want +got):\n%s",
			next.ID, next.Prefix, diff)
	}
	if !works(oldSecret) || !works(nextSecret) {
		w.Error("a key does not work during the overlap, want both to work")
	}
	w.advance(time.Hour)
	if works(oldSecret) || !works(nextSecret) {
		w.Error("after the overlap, want only the new key to work")
	}
	// The old key never ends later than its own expiry; without an overlap it ends at once.
	last, lastSecret, err := m.RotateKey(ctx, ann, next.ID, identity.MaxOverlap)
	w.must(err)
	if k, err := m.Key(ctx, ann, next.ID); err != nil || !k.ExpiresAt.Equal(end) {
		w.Errorf("the old one expires %v, want %v (%v)", k.ExpiresAt, end, err)
	}
	_, _, err = m.RotateKey(ctx, ann, last.ID, 0)
	w.must(err)
	if works(lastSecret) {
		w.Error("old key works without an overlap = true, want false")
	}
	_, _, err = m.RotateKey(ctx, ann, last.ID, 0)
	w.want(err, errs.Conflict)
	_, err = m.RevokeKey(ctx, ann, next.ID)
	w.must(err)
	_, _, err = m.RotateKey(ctx, ann, next.ID, 0)
	w.want(err, errs.Conflict)
	_, _, err = m.RotateKey(ctx, ann, old.ID, -1)
	w.want(err, errs.Invalid)
	_, _, err = m.RotateKey(ctx, ann, "key-none", 0)
	w.want(err, errs.NotFound)

	// Rotation does not give away the key of another user.
	bob := principal("user:bob")
	_, err = w.operator.CreateMember(ctx, bob, "", false)
	w.must(err)
	his, _, err := w.operator.CreateKey(ctx, identity.KeyRequest{Principal: bob, Scopes: []string{"svc:tasks:write"}})
	w.must(err)
	_, _, err = m.RotateKey(ctx, ann, his.ID, 0)
	w.want(err, errs.Forbidden)

	// Of many concurrent rotations, one succeeds.
	for range 8 {
		k, _, err := m.CreateKey(ctx, ann, identity.KeyRequest{
			Principal: principal("service:crm"), Scopes: []string{"svc:tasks:read"},
		})
		w.must(err)
		var won atomic.Int32
		race(w, 20, func(int) error {
			_, _, err := m.RotateKey(ctx, ann, k.ID, 0)
			if err == nil {
				won.Add(1)
			} else if errs.KindOf(err) == errs.Conflict {
				return nil
			}
			return err
		})
		if won.Load() != 1 {
			w.Errorf("rotations of one key = %d, want 1", won.Load())
		}
	}
}

// testAuditTogether: an action and its audit entry are one write.
func testAuditTogether(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	first, _ := w.log(m, ann, identity.AuditFilter{Limit: 1})
	taken := first[0] // an entry that cannot be written again
	key := identity.Key{
		ID: "key-x", Principal: principal("service:crm"), Scopes: identity.Scopes{"agent:*"}, CreatedAt: w.now(),
	}
	member := identity.Member{Principal: principal("user:zoe"), Name: "Zoe", CreatedAt: w.now()}
	for name, write := range map[string]func(e identity.AuditEntry) error{
		"key": func(e identity.AuditEntry) error {
			_, err := w.store.Identity().CreateKey(ctx, key, identity.Hash{1}, identity.Principal{}, e)
			return err
		},
		"member": func(e identity.AuditEntry) error {
			_, err := w.store.Identity().CreateMember(ctx, member, e)
			return err
		},
		"disable": func(e identity.AuditEntry) error {
			decide := func(s identity.MemberScene) (identity.MemberOutcome, error) {
				s.Member.Disabled = true
				return identity.MemberOutcome{Member: s.Member, Entries: []identity.AuditEntry{e}}, nil
			}
			_, err := w.store.Identity().UpdateMember(ctx, principal("service:crm"), w.now(), decide)
			return err
		},
		"agent": func(e identity.AuditEntry) error {
			_, err := w.store.Agents().Create(ctx, agent.Agent{ID: "late", Org: "acme", Name: "Late"},
				identity.Member{Principal: principal("agent:late"), Name: "Late"}, e, agent.Limits{})
			return err
		},
	} {
		if err := write(taken); err == nil {
			w.Errorf("%s with an entry that cannot be written = nil, want an error", name)
		}
	}
	for _, p := range []string{"user:zoe", "agent:late"} {
		_, err := w.store.Identity().Member(ctx, principal(p))
		w.want(err, errs.NotFound)
	}
	_, err := w.store.Identity().Key(ctx, "acme", "key-x")
	w.want(err, errs.NotFound)
	if crm, err := w.store.Identity().Member(ctx, principal("service:crm")); err != nil || crm.Disabled {
		w.Errorf("member = %+v, %v, want it enabled", crm, err)
	}
	// The entry is not written without the action.
	e := identity.NewEntry(ctx, w.now(), "acme", identity.KeyCreate, "key-x", "")
	_, err = w.store.Identity().CreateKey(ctx, key, identity.Hash{1}, identity.Principal{}, e)
	w.must(err)
	e.ID += "2"
	if _, err := w.store.Identity().CreateKey(ctx, key, identity.Hash{2}, identity.Principal{}, e); err == nil {
		w.Error("CreateKey with a taken id = nil, want an error")
	}
	if list, _ := w.log(m, ann, identity.AuditFilter{Action: identity.KeyCreate}); len(list) != 1 {
		w.Errorf("log = %+v, want 1 entry", list)
	}
}

func testAuditLog(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	_, actions := w.log(m, ann, identity.AuditFilter{})
	if diff := cmp.Diff([]string{
		"agent.create agent:scout", "member.create service:crm", "member.create user:ann", "org.create acme",
	}, actions); diff != "" {
		w.Error(diff)
	}
	at := w.now()
	operator := identity.WithOrigin(ctx, identity.Origin{Actor: identity.OperatorActor})
	for range 5 {
		w.must(m.Done(operator, "acme", "token.revoke", "tok-1", ""))
	}
	all, _ := w.log(m, ann, identity.AuditFilter{})
	var walked []identity.AuditEntry
	for f := (identity.AuditFilter{Limit: 2}); ; {
		page, _ := w.log(m, ann, f)
		walked = append(walked, page...)
		if len(page) < 2 {
			break
		}
		f.Before, f.BeforeID = page[1].At, page[1].ID
	}
	if diff := cmp.Diff(all, walked); diff != "" || len(all) != 9 {
		w.Errorf("entries = %d, want 9; diff to the pages (-want +got):\n%s", len(all), diff)
	}
	for _, c := range []struct {
		f    identity.AuditFilter
		want int
	}{
		{identity.AuditFilter{Actor: "operator"}, 5},
		{identity.AuditFilter{Actor: "server"}, 4},
		{identity.AuditFilter{Action: "member.create"}, 2},
		{identity.AuditFilter{From: at}, 5},
		{identity.AuditFilter{To: at}, 4},
		{identity.AuditFilter{From: at, Actor: "server"}, 0},
		{identity.AuditFilter{Target: "tok-1"}, 5},
		{identity.AuditFilter{Target: "tok-1", Limit: 2}, 2},
		{identity.AuditFilter{Target: "tok-1", Before: all[2].At, BeforeID: all[2].ID}, 2},
		{identity.AuditFilter{Target: "tok-1", Actor: "server"}, 0},
		{identity.AuditFilter{Target: "tok"}, 0},
		{identity.AuditFilter{Target: "TOK-1"}, 0},
		{identity.AuditFilter{Target: "user:ann", Action: "member.create"}, 1},
	} {
		if list, _ := w.log(m, ann, c.f); len(list) != c.want {
			w.Errorf("%+v gives %d, want %d", c.f, len(list), c.want)
		}
	}

	// Refusals are logged, but cannot fill the log.
	cause := errs.New(errs.Conflict, "identity.last_admin", "no")
	canceled, cancel := context.WithCancel(identity.WithOrigin(ctx, identity.Origin{Actor: "user:bob"}))
	cancel()
	for range 500 {
		w.must(m.Refused(canceled, "acme", identity.MemberDisable, "user:ann", cause))
	}
	w.must(m.Refused(ctx, "acme", identity.MemberDisable, "user:ann", errs.ErrNotFound)) // not a refusal
	list, _ := w.log(m, ann, identity.AuditFilter{Action: identity.MemberDisable})
	if len(list) != 20 || list[0].Outcome != identity.Refused || list[0].Code != "identity.last_admin" ||
		list[0].Actor != "user:bob" {
		w.Fatalf("refusals = %d, the last %+v, want 20 of user:bob", len(list), list[0])
	}
	w.advance(10 * time.Second)
	w.must(m.Refused(canceled, "acme", identity.MemberDisable, "user:ann", cause))
	list, _ = w.log(m, ann, identity.AuditFilter{Actor: "user:bob", Limit: 1})
	if !strings.HasPrefix(list[0].Detail, "480 refusals") {
		w.Errorf("last entry = %+v, want a detail about 480 refusals", list[0])
	}
}
