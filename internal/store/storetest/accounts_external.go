package storetest

import (
	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const acmeIssuer = "https://login.acme.example"

func arrival(subject, user string) account.Arrival {
	return account.Arrival{
		Org: "acme", Issuer: acmeIssuer, Subject: subject, Provider: "Acme", User: user, Name: "From " + subject, Label: user + "@acme.example",
	}
}

func testArrivals(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	var nobody account.Proof

	// An unknown person is let in only where people are made, and then stays known.
	_, err := people.Arrive(ctx, arrival("s-cy", "cy"), nobody)
	w.want(err, errs.Forbidden)
	_, err = m.Member(ctx, ann, principal("user:cy"))
	w.want(err, errs.NotFound)
	made := arrival("s-cy", "cy")
	made.Create = true
	first, err := people.Arrive(ctx, made, nobody)
	w.must(err)
	if first.Member.Ref() != "user:cy" || first.Member.Name != "From s-cy" || first.Member.Admin {
		w.Errorf("%+v", first.Member)
	}
	_, err = people.Resume(ctx, "acme", "cy", first.Generation)
	w.must(err)
	// The name may change elsewhere: the subject is who it is.
	again, err := people.Arrive(ctx, arrival("s-cy", "ann"), nobody)
	w.must(err)
	if again.Member.ID != "cy" {
		w.Errorf("known as cy, came as %s", again.Member.ID)
	}
	// Another subject does not become the same user, nor does another issuer's.
	_, err = people.Arrive(ctx, arrival("s-other", "cy"), nobody)
	w.want(err, errs.Conflict)
	elsewhere := arrival("s-cy", "cy")
	elsewhere.Issuer = "https://other.example"
	_, err = people.Arrive(ctx, elsewhere, nobody)
	w.want(err, errs.Conflict)
	// Nor does another org know the person.
	foreign := arrival("s-cy", "cy")
	foreign.Org = "other"
	_, err = people.Arrive(ctx, foreign, nobody)
	w.want(err, errs.Forbidden)
	_, err = w.store.Identity().MemberBySubject(ctx, "other", acmeIssuer, "s-cy")
	w.want(err, errs.NotFound)
	got, err := w.store.Identity().MemberBySubject(ctx, "acme", acmeIssuer, "s-cy")
	w.must(err)
	if got.Ref() != "user:cy" {
		w.Errorf("%+v", got)
	}

	// Sessions of people without a password end as all others do.
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

	// The log tells all of it, refusals included.
	_, actions := w.log(m, ann, identity.AuditFilter{Actor: "user:cy"})
	want := []string{"login", "logout.everywhere", "login", "login", "identity.link", "member.create"}
	if len(actions) != len(want) {
		w.Errorf("the log has %q; want %q", actions, want)
	}
	entries, _ := w.log(m, ann, identity.AuditFilter{Action: account.LoginFailed})
	if len(entries) != 4 || entries[0].Code != "account.disabled" || entries[0].Outcome != identity.Refused {
		w.Errorf("failed logins %+v", entries)
	}
}

func testConnections(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	p := principal("user:ann")
	_, err := people.SetPassword(ctx, p, goodPassword)
	w.must(err)
	_, err = people.Arrive(ctx, arrival("s-ann", "ann"), account.Proof{})
	w.want(err, errs.Conflict) // who has a password connects first
	_, err = people.Arrive(ctx, arrival("s-ann", ""), account.Proof{User: "ann"})
	w.must(err)
	in, err := people.Arrive(ctx, arrival("s-ann", ""), account.Proof{})
	w.must(err)
	if in.Member.Principal != p {
		w.Errorf("%+v", in.Member)
	}
	// The session is that of the generation in force, as one by password.
	byPassword, err := people.Login(ctx, "acme", "ann", goodPassword)
	w.must(err)
	if in.Generation != byPassword.Generation {
		w.Errorf("generations %d and %d", in.Generation, byPassword.Generation)
	}
	ways, err := people.Ways(ctx, p)
	w.must(err)
	if !ways.Password || len(ways.Identities) != 1 || ways.Identities[0].Subject != "s-ann" {
		w.Errorf("%+v", ways)
	}
	twin := identity.Principal{Org: "other", Kind: identity.User, ID: "ann"}
	if ways, err := people.Ways(ctx, twin); err != nil || len(ways.Identities) != 0 {
		w.Errorf("another org's user of the name has %+v, %v", ways, err)
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
		w.Error("tokens of the issuer stay in memory")
	}
	w.want(people.Disconnect(ctx, p, acmeIssuer, "Acme"), errs.NotFound)
	_, err = people.Arrive(ctx, arrival("s-ann", "ann"), account.Proof{})
	w.want(err, errs.Conflict)

	// The provider's word on admins is carried out, but for the last one.
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
	if after, _ := w.store.Identity().Epoch(ctx); !cy.Member.Admin || less.Member.Admin || stored.Admin || after == before {
		w.Errorf("admin at first %t, then %t, stored %t", cy.Member.Admin, less.Member.Admin, stored.Admin)
	}
	w.want(people.Disconnect(ctx, cy.Member.Principal, acmeIssuer, "Acme"), errs.Conflict)
	_, err = people.Arrive(ctx, arrival("s-ann", ""), account.Proof{User: "ann"})
	w.must(err)
	last := arrival("s-ann", "ann")
	last.Admin = &no
	kept, err := people.Arrive(ctx, last, account.Proof{})
	w.must(err)
	if !kept.Member.Admin {
		w.Error("the last admin lost the role")
	}

	// An invitation and a link are used up by an arrival, together with what it does.
	inv, token, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "dot", Name: "Dot"})
	w.must(err)
	_, err = people.Arrive(ctx, arrival("s-cy", "cy"), account.ProofOfInvitation(token))
	w.want(err, errs.Conflict) // cy is a member already
	dot, err := people.Arrive(ctx, arrival("s-dot", "somebody"), account.ProofOfInvitation(token))
	w.must(err)
	if dot.Member.ID != "dot" || dot.Member.Name != "Dot" {
		w.Errorf("%+v", dot.Member)
	}
	_, err = m.Invitation(ctx, token)
	w.want(err, errs.NotFound)
	_, err = people.Arrive(ctx, arrival("s-eve", "eve"), account.ProofOfInvitation(token))
	w.want(err, errs.NotFound)
	entries, _ := w.log(m, ann, identity.AuditFilter{Action: identity.InvitationAccept})
	if len(entries) != 1 || entries[0].Target != inv.ID || entries[0].Actor != "user:dot" {
		w.Errorf("%+v", entries)
	}
	w.must(people.Disconnect(ctx, p, acmeIssuer, "Acme"))
	token, _, err = people.NewLink(ctx, p)
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
		w.Errorf("%d of 20 tabs of one person were signed in", n)
	}
	// Of twenty people who bring one invitation, one gets in.
	_, token, err := m.Invite(ctx, ann, identity.InvitationRequest{User: "dot"})
	w.must(err)
	if n := w.race(func() error {
		_, err := people.Arrive(ctx, arrival(w.newID("s-"), "dot"), account.ProofOfInvitation(token))
		return err
	}); n != 1 {
		w.Errorf("%d people came in with one invitation", n)
	}
	// Of twenty people of one name, one is connected with the user of that name.
	_, err = m.CreateMember(ctx, ann, identity.User, "eve", "", false)
	w.must(err)
	if n := w.race(func() error { _, err := people.Arrive(ctx, arrival(w.newID("s-"), "eve"), account.Proof{}); return err }); n != 1 {
		w.Errorf("%d people became one user", n)
	}
	// Of two ways to sign in, one is left however many are taken away at once.
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
		w.Errorf("%d of two ways were taken away", n)
	}
}
