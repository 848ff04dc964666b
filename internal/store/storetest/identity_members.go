package storetest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

func testDisable(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	auth := identity.NewAuthenticator(w.store.Identity(), w.now)
	works := func(secret string) bool {
		w.must(auth.Refresh(ctx))
		_, err := auth.Authenticate(ctx, secret)
		return err == nil
	}
	flag := func(b bool) *bool { return &b }
	for _, ref := range []string{"service:crm", "agent:scout"} {
		p := principal(ref)
		_, secret, err := m.CreateKey(ctx, ann, identity.KeyRequest{Principal: p, Scopes: []string{"svc:tasks:read"}})
		w.must(err)
		if !works(secret) {
			w.Fatalf("%s: key works = false, want true", ref)
		}
		off, err := m.UpdateMember(ctx, ann, p, identity.MemberEdit{Disabled: flag(true)})
		w.must(err)
		if got, err := m.Member(ctx, ann, p); err != nil || got != off || !got.Disabled {
			w.Errorf("%s: member = %+v, %v, want %+v", ref, got, err, off)
		}
		if works(secret) {
			w.Errorf("%s: key works while disabled = true, want false", ref)
		}
		_, _, err = m.CreateKey(ctx, ann, identity.KeyRequest{Principal: p, Scopes: []string{"svc:tasks:read"}})
		w.want(err, errs.Conflict)
		k, err := m.Keys(ctx, ann, identity.KeyFilter{Principal: p})
		w.must(err)
		if len(k) != 1 || !k[0].Disabled || k[0].State(w.now()) != identity.KeyLive {
			w.Errorf("%s: keys = %+v, want 1, live and disabled", ref, k)
		}
		_, _, err = m.RotateKey(ctx, ann, k[0].ID, 0)
		w.want(err, errs.Conflict)
		_, err = m.UpdateMember(ctx, ann, p, identity.MemberEdit{Disabled: flag(false)})
		w.must(err)
		if !works(secret) {
			w.Errorf("%s: key works after it was enabled = false, want true", ref)
		}
		_, err = m.UpdateMember(ctx, ann, p, identity.MemberEdit{Admin: flag(true)})
		w.want(err, errs.Invalid)
	}

	// An agent and its principal are changed together.
	scout := principal("agent:scout")
	name := "Scout II"
	_, err := m.UpdateMember(ctx, ann, scout, identity.MemberEdit{Name: &name, Disabled: flag(true)})
	w.must(err)
	a, err := w.store.Agents().Reached(ctx, "acme", "scout")
	if err != nil || a.Own == nil || !a.Own.Disabled || a.Own.Name != name {
		w.Errorf("agent = %+v, %v, want it disabled and named %s", a.Own, err, name)
	}
	_, err = w.agents.Update(ctx, "acme", "scout", agent.Edit{Disabled: flag(false)})
	w.must(err)
	if got, err := m.Member(ctx, ann, scout); err != nil || got.Disabled || got.Name != name {
		w.Errorf("principal = %+v, %v, want it enabled and named %s", got, err, name)
	}
	_, actions := w.log(m, ann, identity.AuditFilter{Limit: 3})
	if len(actions) != 3 || actions[0] != "agent.enable agent:scout" ||
		!(actions[1] == "member.disable agent:scout" && actions[2] == "member.update agent:scout" ||
			actions[2] == "member.disable agent:scout" && actions[1] == "member.update agent:scout") {
		w.Errorf("log = %v, want agent.enable, member.disable and member.update of agent:scout", actions)
	}
	disabled, err := m.Members(ctx, ann, identity.MemberFilter{State: identity.MemberDisabled})
	w.must(err)
	if len(disabled) != 0 {
		w.Errorf("disabled members = %+v, want none", disabled)
	}
}

func testLastAdmin(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	yes, no := true, false
	refused := func(a identity.Access, ref string, e identity.MemberEdit, code string) {
		w.Helper()
		_, err := m.UpdateMember(ctx, a, principal(ref), e)
		if errs.KindOf(err) != errs.Conflict || errs.As(err).Code != code {
			w.Errorf("%s: %v, want %s", ref, err, code)
		}
	}
	refused(ann, "user:ann", identity.MemberEdit{Disabled: &yes}, "identity.not_oneself")
	refused(ann, "user:ann", identity.MemberEdit{Admin: &no}, "identity.last_admin")
	refused(w.access("acme", "service:crm"), "user:ann", identity.MemberEdit{Disabled: &yes}, "identity.last_admin")
	for _, id := range []string{"bob", "cid"} {
		_, err := m.CreateMember(ctx, ann, identity.User, id, "", true)
		w.must(err)
	}
	// Each of three admins removes the rights of the next: one must remain.
	for range 10 {
		admins := []string{"user:ann", "user:bob", "user:cid"}
		race(w, len(admins), func(i int) error {
			_, err := m.UpdateMember(ctx, w.access("acme", admins[i]), principal(admins[(i+1)%3]),
				identity.MemberEdit{Admin: &no})
			if errs.KindOf(err) == errs.Conflict {
				err = nil
			}
			return err
		})
		left := 0
		for _, ref := range admins {
			got, err := m.Member(ctx, ann, principal(ref))
			w.must(err)
			if got.Admin {
				left++
			}
			_, err = m.UpdateMember(ctx, ann, got.Principal, identity.MemberEdit{Admin: &yes})
			w.must(err)
		}
		if left != 1 {
			w.Fatalf("remaining admins = %d of three, want 1", left)
		}
	}
	_, err := m.UpdateMember(ctx, ann, principal("user:nobody"), identity.MemberEdit{Admin: &yes})
	w.want(err, errs.NotFound)

	list, err := m.Members(ctx, ann, identity.MemberFilter{Limit: 2})
	w.must(err)
	rest, err := m.Members(ctx, ann, identity.MemberFilter{After: list[1].Principal})
	w.must(err)
	if len(list) != 2 || len(rest) != 3 || list[0].Ref() != "agent:scout" || rest[2].Ref() != "user:cid" {
		w.Errorf("pages = %+v, %+v, want agent:scout first and user:cid last", list, rest)
	}
}

// acceptOnce accepts one invitation many times concurrently.
func acceptOnce(w *world, m orgAdmin, token, user string) {
	w.Helper()
	var won atomic.Int32
	race(w, 50, func(int) error {
		got, err := m.Accept(w.Context(), token, "the hash")
		switch {
		case err == nil:
			won.Add(1)
			// The password is set together with the user, so that the user always has one.
			c, err := w.store.Accounts().Credentials(w.Context(), got.Principal)
			if err != nil || c.Hash != "the hash" || c.Generation != 1 {
				return fmt.Errorf("credentials = %+v, want the hash with generation 1; %w", c, err)
			}
			if got.Ref() != "user:"+user || !got.Admin || got.Name != "Zoe" || got.Org != "acme" {
				return fmt.Errorf("member = %+v, want admin user:%s of acme named Zoe", got, user)
			}
		case errs.As(err).Code != "identity.bad_invitation":
			return err
		}
		return nil
	})
	if won.Load() != 1 {
		w.Fatalf("accepted one invitation %d times, want 1", won.Load())
	}
}

func testInvitations(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	inv, token, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "zoe", Name: "Zoe", Admin: true})
	w.must(err)
	if len(token) < 43 || inv.ExpiresAt.Sub(inv.CreatedAt) != 7*24*time.Hour {
		w.Errorf("invitation = %q, %+v, want a token of 43 characters that expires in 7 days", token, inv)
	}
	_, err = w.store.Identity().InvitationByHash(ctx, identity.Hash([]byte((token + token)[:32])))
	w.want(err, errs.NotFound)
	if seen, err := m.Invitation(ctx, token); err != nil || seen != inv {
		w.Errorf("invitation = %+v, %v, want %+v", seen, err, inv)
	}
	acceptOnce(w, m, token, "zoe")
	list, _ := w.log(m, ann, identity.AuditFilter{Action: identity.InvitationAccept})
	if len(list) != 1 || list[0].Actor != "user:zoe" || list[0].Target != inv.ID || list[0].KeyID != "" {
		w.Errorf("log = %+v, want one entry of user:zoe about %s", list, inv.ID)
	}
	for _, user := range []string{"u1", "u2", "u3", "u4", "u5"} {
		_, token, err := m.Invite(ctx, ann, identity.InvitationRequest{User: user, Name: "Zoe", Admin: true})
		w.must(err)
		acceptOnce(w, m, token, user)
	}
	_, err = m.Invitation(ctx, token)
	w.want(err, errs.NotFound)
	_, err = m.RevokeInvitation(ctx, ann, inv.ID)
	w.want(err, errs.Conflict)
	_, _, err = m.Invite(ctx, ann, identity.InvitationRequest{User: "zoe"})
	w.want(err, errs.Conflict)

	// Revoked, expired, superseded or malformed invitations.
	gone, goneToken, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "gus"})
	w.must(err)
	_, lateToken, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "lou", Expires: time.Hour})
	w.must(err)
	_, secondToken, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "max"})
	w.must(err)
	for range 2 {
		got, err := m.RevokeInvitation(ctx, ann, gone.ID)
		w.must(err)
		if got.RevokedAt.IsZero() {
			w.Errorf("invitation = %+v, want it revoked", got)
		}
	}
	_, err = m.CreateMember(ctx, ann, identity.User, "max", "", false)
	w.must(err)
	w.advance(time.Hour)
	for _, token := range []string{goneToken, lateToken, "", "x", token + "x"} {
		_, err := m.Accept(ctx, token, "")
		w.want(err, errs.NotFound)
	}
	_, err = m.Accept(ctx, secondToken, "")
	w.want(err, errs.Conflict)
	for _, r := range []identity.InvitationRequest{
		{User: "Zoe"}, {User: "a", Name: "\n"}, {User: "a", Expires: 31 * 24 * time.Hour}, {User: "a", Expires: -1},
	} {
		_, _, err := m.Invite(ctx, ann, r)
		w.want(err, errs.Invalid)
	}

	all, err := m.Invitations(ctx, ann, "", 0)
	w.must(err)
	page, err := m.Invitations(ctx, ann, all[1].ID, 2)
	w.must(err)
	if len(all) != 9 || len(page) != 2 || page[0] != all[2] {
		w.Errorf("all = %+v, page = %+v, want 9 and 2 that start with the third", all, page)
	}
	var states []string
	for _, i := range all {
		states = append(states, i.State(w.now()))
	}
	if got := states; got[0] != "open" || got[1] != "expired" || got[2] != "revoked" || got[8] != "accepted" {
		w.Errorf("states = %v, want open, expired, revoked and at last accepted", got)
	}
	eve := w.access("other", "user:ann")
	if list, err := m.Invitations(ctx, eve, "", 0); err != nil || len(list) != 0 {
		w.Errorf("invitations of the other org = %+v, %v, want none", list, err)
	}
	_, err = m.RevokeInvitation(ctx, eve, gone.ID)
	w.want(err, errs.NotFound)
}
