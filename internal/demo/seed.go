package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/webhook"
)

// SeedOptions are what Seed needs.
type SeedOptions struct {
	Services // with Clock as their clock
	Clock    *Clock
	Now      time.Time // when the history ends
	Receiver string    // URL of the Receiver
	// Touch records when keys were last used.
	Touch func(context.Context, map[string]time.Time) error
}

// seeding is the state of Seed.
type seeding struct {
	Services
	line     timeline
	receiver string
	filed    map[string]*filedProposal // by title
	leases   map[string]string         // of claimed tasks, by uid
	used     map[string]time.Time      // when keys were last used
}

// Seed writes the history of the company. The org of Founding must exist, and be empty.
func Seed(ctx context.Context, o SeedOptions) error {
	s := &seeding{
		Services: o.Services, line: newTimeline(o.Clock, o.Now), receiver: o.Receiver,
		filed: map[string]*filedProposal{}, leases: map[string]string{}, used: map[string]time.Time{},
	}
	s.addPeople()
	s.addAgents()
	s.addKeys()
	s.addWebhooks()
	s.addNotes()
	for i := range ideas {
		s.addIdea(&ideas[i])
	}
	for i := range annoyances {
		s.addFriction(&annoyances[i])
	}
	s.addChores()
	for n, e := range errands() {
		s.addErrand(n, e)
	}
	// The admin did what the audit log shows, except for the sign-ins of others.
	ctx = identity.WithOrigin(ctx, identity.Origin{Actor: "user:" + Founding.Admin})
	if err := s.line.play(ctx); err != nil {
		return fmt.Errorf("write the history of the demo: %w", err)
	}
	return o.Touch(ctx, s.used) // last: Unfinished looks for it
}

// Unfinished reports whether an org is that of a demo whose Seed was interrupted. Only the end of Seed
// makes keys look used, and nobody knows the first key before.
func Unfinished(org identity.Org, keys []identity.Key) bool {
	used := slices.ContainsFunc(keys, func(k identity.Key) bool { return !k.LastUsedAt.IsZero() })
	return org.ID == Founding.Org && org.Name == Founding.OrgName && !used
}

// act is what a member does with the proof that it may.
type act func(context.Context, identity.Access) error

// by adds a step of a member to the timeline.
func (s *seeding) by(who string, at time.Time, what string, action identity.Action, do act) {
	s.line.at(at, what, func(ctx context.Context) error {
		access, err := s.as(who, action)
		if err != nil {
			return err
		}
		return do(ctx, access)
	})
}

// byAdmin adds a step of the first admin.
func (s *seeding) byAdmin(age time.Duration, what string, action identity.Action, do act) {
	s.by("user:"+Founding.Admin, s.line.ago(age), what, action, do)
}

// addPeople adds the people and services, one who left, and an invitation that is open.
func (s *seeding) addPeople() {
	const left, invited = 10 * day, 2 * day
	for n, p := range append(people, leftCompany) {
		s.byAdmin(p.joined, "create "+p.id, identity.ManageMembers, func(ctx context.Context, a identity.Access) error {
			_, err := s.OrgAdmin.CreateMember(ctx, a, p.kind, p.id, p.name, p.admin)
			return err
		})
		if p.kind == identity.User && p != leftCompany {
			s.addSignIn(p.id, s.line.ago(p.joined-time.Hour))
			s.addSignIn(p.id, s.line.ago(time.Duration(1+n*n)*time.Hour))
		}
	}
	s.byAdmin(left, "disable", identity.ManageMembers, func(ctx context.Context, a identity.Access) error {
		gone := true
		who := identity.Principal{Org: Founding.Org, Kind: leftCompany.kind, ID: leftCompany.id}
		_, err := s.OrgAdmin.UpdateMember(ctx, a, who, identity.MemberEdit{Disabled: &gone})
		return err
	})
	s.byAdmin(invited, "invite", identity.ManageMembers, func(ctx context.Context, a identity.Access) error {
		_, _, err := s.OrgAdmin.Invite(ctx, a, identity.InvitationRequest{User: "oksana", Name: "Oksana Bondar"})
		return err
	})
}

// addSignIn adds a sign-in, by which pages show when a person was last seen.
func (s *seeding) addSignIn(user string, at time.Time) {
	s.line.at(s.line.before(at), "sign in "+user, func(ctx context.Context) error {
		ref := "user:" + user
		ctx = identity.WithOrigin(ctx, identity.Origin{Actor: ref, Address: "192.0.2.7"})
		return s.OrgAdmin.Done(ctx, Founding.Org, account.LoggedIn, ref, "")
	})
}

func (s *seeding) addAgents() {
	for n, a := range agents {
		age := 28*day - time.Duration(n)*time.Hour
		s.byAdmin(age, "register "+a.ID, identity.ManageAgents, func(ctx context.Context, by identity.Access) error {
			a.Org = Founding.Org
			a.Describe(a.Profile.Skills)
			_, err := s.Agents.Create(ctx, by, a)
			return err
		})
	}
}

// addKeys adds the keys. Nobody gets to know their secrets: the workers of the demo need none.
func (s *seeding) addKeys() {
	for _, k := range keys {
		id := ""
		s.byAdmin(k.made, "create key "+k.name, identity.ManageKeys, func(ctx context.Context, a identity.Access) error {
			owner, err := identity.ParseRef(Founding.Org, k.owner)
			if err != nil {
				return err
			}
			r := identity.KeyRequest{Principal: owner, Name: k.name, Scopes: k.scopes}
			if k.ends > 0 {
				r.ExpiresAt = s.line.end.Add(k.ends)
			}
			made, _, err := s.OrgAdmin.CreateKey(ctx, a, r)
			if id = made.ID; k.used > 0 {
				s.used[id] = s.line.ago(k.used)
			}
			return err
		})
		if k.revoked > 0 {
			s.byAdmin(k.revoked, "revoke key", identity.ManageKeys, func(ctx context.Context, a identity.Access) error {
				_, err := s.OrgAdmin.RevokeKey(ctx, a, id)
				return err
			})
		}
	}
}

// addWebhooks adds a webhook that works, one whose receiver is gone, and one that is paused. They
// are behind the log when the server starts, so that it delivers the events since then.
func (s *seeding) addWebhooks() {
	decisions := []event.Type{event.ProposalApproved, event.ProposalRejected, event.ProposalResolved, event.TaskFailed}
	for _, w := range []struct {
		age time.Duration
		webhook.Creation
	}{
		{9 * day, webhook.Creation{
			URL: s.receiver + hookPath, Description: "Decisions to the planning board", Types: decisions,
		}},
		{3 * day, webhook.Creation{
			URL: s.receiver + gonePath, Description: "Old status page", Types: []event.Type{event.TaskFailed},
		}},
		{2 * day, webhook.Creation{
			URL: s.receiver + hookPath + "/chat", Description: "Channel #improvements", Format: webhook.Slack,
			State: webhook.Paused, Types: []event.Type{event.ProposalSubmitted},
		}},
	} {
		s.byAdmin(w.age, "create webhook", identity.ManageWebhooks, func(ctx context.Context, a identity.Access) error {
			_, _, err := s.Webhooks.Create(ctx, a, w.Creation)
			return err
		})
	}
}

// addNotes adds saved notes for decisions.
func (s *seeding) addNotes() {
	for _, n := range []proposal.NoteCreation{
		{Title: "Needs numbers", Text: "Please add how often this happens and what it costs us, and submit it again."},
		{Title: "Next quarter", Text: "Good idea, but not before the warehouse move. We look at it again in January."},
	} {
		s.byAdmin(24*day, "save note", identity.ManageNotes, func(ctx context.Context, a identity.Access) error {
			_, err := s.Proposals.CreateNote(ctx, a, n)
			return err
		})
	}
}

// followup reads a follow-up.
func (s *seeding) followup(ctx context.Context, id string) (followup.Followup, error) {
	access, err := s.as("user:"+Founding.Admin, identity.ReadFollowup)
	if err != nil {
		return followup.Followup{}, err
	}
	return s.Followups.Get(ctx, access, id)
}
