package storetest

import (
	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const acmeIssuer = "https://login.acme.example"

func arrival(subject, user string) account.Arrival {
	return account.Arrival{
		Org: "acme", Issuer: acmeIssuer, Subject: subject, Provider: "Acme", User: user, Name: "From " + subject,
		Label: user + "@acme.example",
	}
}

func testArrivals(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	var nobody account.Proof

	// An unknown person may sign in only if the provider creates users, and is known afterwards.
	_, err := people.Arrive(ctx, arrival("s-cy", "cy"), nobody)
	w.want(err, errs.Forbidden)
	_, err = m.Member(ctx, ann, principal("user:cy"))
	w.want(err, errs.NotFound)
	made := arrival("s-cy", "cy")
	made.Create = true
	first, err := people.Arrive(ctx, made, nobody)
	w.must(err)
	if first.Member.Ref() != "user:cy" || first.Member.Name != "From s-cy" || first.Member.Admin {
		w.Errorf("member = %+v, want user:cy named From s-cy, not an admin", first.Member)
	}
	_, err = people.Resume(ctx, "acme", "cy", first.Generation)
	w.must(err)
	// The name may change at the provider; the subject identifies the person.
	again, err := people.Arrive(ctx, arrival("s-cy", "ann"), nobody)
	w.must(err)
	if again.Member.ID != "cy" {
		w.Errorf("user = %s, want cy", again.Member.ID)
	}
	// Another subject does not become the same user, nor does a subject of another issuer.
	_, err = people.Arrive(ctx, arrival("s-other", "cy"), nobody)
	w.want(err, errs.Conflict)
	elsewhere := arrival("s-cy", "cy")
	elsewhere.Issuer = "https://other.example"
	_, err = people.Arrive(ctx, elsewhere, nobody)
	w.want(err, errs.Conflict)
	// The person is unknown in another org.
	foreign := arrival("s-cy", "cy")
	foreign.Org = "other"
	_, err = people.Arrive(ctx, foreign, nobody)
	w.want(err, errs.Forbidden)
	_, err = w.store.Identity().MemberBySubject(ctx, "other", acmeIssuer, "s-cy")
	w.want(err, errs.NotFound)
	got, err := w.store.Identity().MemberBySubject(ctx, "acme", acmeIssuer, "s-cy")
	w.must(err)
	if got.Ref() != "user:cy" {
		w.Errorf("member = %+v, want user:cy", got)
	}

	// Sessions of users without a password end like all others.
	w.must(people.LogoutEverywhere(ctx, first.Member.Principal))
	_, err = people.Resume(ctx, "acme", "cy", first.Generation)
	w.want(err, errs.NotFound)
	second, err := people.Arrive(ctx, arrival("s-cy", "cy"), nobody)
	w.must(err)
	yes, no := true, false
	_, err = m.UpdateMember(ctx, ann, first.Member.Principal, identity.MemberEdit{Disabled: &yes})
	w.must(err)
	_, err = people.Resume(ctx, "acme", "cy", second.Generation)
	w.want(err, errs.NotFound)
	_, err = people.Arrive(ctx, arrival("s-cy", "cy"), nobody)
	w.want(err, errs.Forbidden)
	_, err = m.UpdateMember(ctx, ann, first.Member.Principal, identity.MemberEdit{Disabled: &no})
	w.must(err)
	_, err = people.Resume(ctx, "acme", "cy", second.Generation)
	w.want(err, errs.NotFound)

	// The audit log has all entries, including refusals.
	_, actions := w.log(m, ann, identity.AuditFilter{Actor: "user:cy"})
	want := []string{"login", "logout.everywhere", "login", "login", "identity.link", "member.create"}
	if len(actions) != len(want) {
		w.Errorf("the log has %q, want %q", actions, want)
	}
	entries, _ := w.log(m, ann, identity.AuditFilter{Action: account.LoginFailed})
	if len(entries) != 4 || entries[0].Code != "account.disabled" || entries[0].Outcome != identity.Refused {
		w.Errorf("failed logins = %+v, want 4, the last one refused as account.disabled", entries)
	}
}

func testConnections(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	p := principal("user:ann")
	w.setPassword(p, goodPassword)
	_, err := people.Arrive(ctx, arrival("s-ann", "ann"), account.Proof{})
	w.want(err, errs.Conflict) // a user with a password must connect first
	_, err = people.Arrive(ctx, arrival("s-ann", ""), account.Proof{User: "ann"})
	w.must(err)
	in, err := people.Arrive(ctx, arrival("s-ann", ""), account.Proof{})
	w.must(err)
	if in.Member.Principal != p {
		w.Errorf("member = %+v, want %s", in.Member, p.Ref())
	}
	// The session has the current generation, like one by password.
	byPassword, err := people.Login(ctx, "acme", "ann", goodPassword)
	w.must(err)
	if in.Generation != byPassword.Generation {
		w.Errorf("generation = %d, want %d", in.Generation, byPassword.Generation)
	}
	ways, err := people.Ways(ctx, p)
	w.must(err)
	if !ways.Password || len(ways.Identities) != 1 || ways.Identities[0].Subject != "s-ann" {
		w.Errorf("ways to sign in = %+v, want a password and s-ann", ways)
	}
	twin := identity.Principal{Org: "other", Kind: identity.User, ID: "ann"}
	if ways, err := people.Ways(ctx, twin); err != nil || len(ways.Identities) != 0 {
		w.Errorf("ways of the same name in another org = %+v, %v, want no identities", ways, err)
	}
	w.want(people.Disconnect(ctx, twin, acmeIssuer, "Acme"), errs.NotFound)
	_, err = w.store.Identity().MemberBySubject(ctx, "other", acmeIssuer, "s-ann")
	w.want(err, errs.NotFound)
	foreign := arrival("s-ann", "")
	foreign.Org = "other"
	_, err = people.Arrive(ctx, foreign, account.Proof{})
	w.want(err, errs.Forbidden)

	before, err := w.store.Identity().Epoch(ctx)
	w.must(err)
	w.must(people.Disconnect(ctx, p, acmeIssuer, "Acme"))
	if after, _ := w.store.Identity().Epoch(ctx); after == before {
		w.Errorf("epoch = %d, want more: tokens of the issuer stay cached", before)
	}
	w.want(people.Disconnect(ctx, p, acmeIssuer, "Acme"), errs.NotFound)
	_, err = people.Arrive(ctx, arrival("s-ann", "ann"), account.Proof{})
	w.want(err, errs.Conflict)

	// The provider decides who is an admin, except for the last admin.
	yes, no := true, false
	made := arrival("s-cy", "cy")
	made.Create, made.Admin = true, &yes
	cy, err := people.Arrive(ctx, made, account.Proof{})
	w.must(err)
	before, _ = w.store.Identity().Epoch(ctx)
	made.Admin = &no
	less, err := people.Arrive(ctx, made, account.Proof{})
	w.must(err)
	stored, err := m.Member(ctx, ann, cy.Member.Principal)
	w.must(err)
	after, _ := w.store.Identity().Epoch(ctx)
	if !cy.Member.Admin || less.Member.Admin || stored.Admin || after == before {
		w.Errorf("admin at first = %t, then %t, stored %t, want true, false, false and a new epoch",
			cy.Member.Admin, less.Member.Admin, stored.Admin)
	}
	w.want(people.Disconnect(ctx, cy.Member.Principal, acmeIssuer, "Acme"), errs.Conflict)
	_, err = people.Arrive(ctx, arrival("s-ann", ""), account.Proof{User: "ann"})
	w.must(err)
	last := arrival("s-ann", "ann")
	last.Admin = &no
	kept, err := people.Arrive(ctx, last, account.Proof{})
	w.must(err)
	if !kept.Member.Admin {
		w.Error("last admin: admin = false, want true")
	}

	// An arrival uses up an invitation or a link in the same transaction.
	inv, token, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "dot", Name: "Dot"})
	w.must(err)
	_, err = people.Arrive(ctx, arrival("s-cy", "cy"), account.ProofOfInvitation(token))
	w.want(err, errs.Conflict) // cy is a member already
	dot, err := people.Arrive(ctx, arrival("s-dot", "somebody"), account.ProofOfInvitation(token))
	w.must(err)
	if dot.Member.ID != "dot" || dot.Member.Name != "Dot" {
		w.Errorf("member = %+v, want dot named Dot", dot.Member)
	}
	_, err = m.Invitation(ctx, token)
	w.want(err, errs.NotFound)
	_, err = people.Arrive(ctx, arrival("s-eve", "eve"), account.ProofOfInvitation(token))
	w.want(err, errs.NotFound)
	entries, _ := w.log(m, ann, identity.AuditFilter{Action: identity.InvitationAccept})
	if len(entries) != 1 || entries[0].Target != inv.ID || entries[0].Actor != "user:dot" {
		w.Errorf("log = %+v, want one entry of user:dot about %s", entries, inv.ID)
	}
	w.must(people.Disconnect(ctx, p, acmeIssuer, "Acme"))
	token, err = w.newLink(p)
	w.must(err)
	_, err = people.Arrive(ctx, arrival("s-ann2", "x"), account.ProofOfLink(token))
	w.must(err)
	_, err = people.Link(ctx, token)
	w.want(err, errs.NotFound)
}

func testRacingArrivals(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	// One person in twenty tabs becomes one user, and all tabs are signed in.
	made := arrival("s-cy", "cy")
	made.Create = true
	if n := w.race(func() error { _, err := people.Arrive(ctx, made, account.Proof{}); return err }); n != 20 {
		w.Errorf("signed in %d tabs of one person, want 20", n)
	}
	// Of twenty people with the same invitation, one is accepted.
	_, token, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "dot"})
	w.must(err)
	if n := w.race(func() error {
		_, err := people.Arrive(ctx, arrival(w.newID("s-"), "dot"), account.ProofOfInvitation(token))
		return err
	}); n != 1 {
		w.Errorf("accepted %d people with one invitation, want 1", n)
	}
	// Of twenty people of one name, one is connected to the user of that name.
	_, err = m.CreateMember(ctx, ann, identity.User, "eve", "", false)
	w.must(err)
	if n := w.race(func() error {
		_, err := people.Arrive(ctx, arrival(w.newID("s-"), "eve"), account.Proof{})
		return err
	}); n != 1 {
		w.Errorf("connected %d people to one user, want 1", n)
	}
	// Of two ways to sign in, one remains, however many requests remove them concurrently.
	_, err = people.Arrive(ctx, func() account.Arrival {
		a := arrival("s-cy", "")
		a.Issuer = "https://other.example"
		return a
	}(), account.Proof{User: "cy"})
	w.must(err)
	p := principal("user:cy")
	turn := []string{acmeIssuer, "https://other.example"}
	if n := w.race(func() error {
		i := w.ids.Add(1)
		return people.Disconnect(ctx, p, turn[i%2], "Acme")
	}); n != 1 {
		w.Errorf("removed %d of two ways, want 1", n)
	}
}
