package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// addIdea adds the story of a proposal to the timeline: submission, edit, votes and decision.
func (s *seeding) addIdea(i *idea) {
	p := &filedProposal{title: i.title}
	s.filed[i.title] = p
	submitted := s.line.before(s.line.ago(days(i.age)))
	s.by(i.by, submitted, "submit "+p.String(), identity.SubmitProposal,
		func(ctx context.Context, a identity.Access) error {
			cmd := i.submission()
			if i.end.status == proposal.Draft {
				cmd.Status = proposal.Draft
			}
			out, err := s.Proposals.Submit(ctx, a, cmd)
			p.id = out.Proposal.ID
			return err
		})
	if i.edited != "" {
		s.by(i.by, submitted.Add(day/2), "edit "+p.String(), identity.ChangeProposal,
			func(ctx context.Context, a identity.Access) error {
				_, err := s.Proposals.Edit(ctx, a, p.id, proposal.Edit{Title: &i.edited})
				return err
			})
	}
	if i.end.status == proposal.Draft {
		return
	}
	s.addVotes(p, submitted, i.votes, i.says, i.end)
	s.addEnding(p, submitted, i.end)
}

// votingTime is how long after a submission the last votes are cast.
const votingTime = 3 * day

// addVotes spreads the votes over the time until the decision, or until now.
func (s *seeding) addVotes(p *filedProposal, submitted time.Time, votes string, says map[string]string, end ending) {
	until := s.line.end
	if end.status != "" {
		until = submitted.Add(days(end.after))
	}
	list := strings.Fields(votes)
	pause := min(until.Sub(submitted), votingTime) * 2 / 3 / time.Duration(len(list)+1)
	at := submitted
	for _, mark := range list {
		voter, choice := voteOf(mark)
		_, id, _ := strings.Cut(voter, ":")
		at = at.Add(s.line.about(pause))
		s.line.at(at, "vote on "+p.String(), func(ctx context.Context) error {
			return s.vote(ctx, p.id, voter, proposal.Ballot{Choice: choice, Comment: says[id]})
		})
	}
}

// voteOf reads a mark of idea.votes: "@docs-writer+" is a vote of an agent for the proposal.
func voteOf(mark string) (voter string, choice proposal.Choice) {
	voter, choice = "user:", proposal.For
	name, against := strings.CutSuffix(mark, "-")
	if against {
		choice = proposal.Against
	}
	name = strings.TrimSuffix(name, "+")
	if id, ok := strings.CutPrefix(name, "@"); ok {
		return "agent:" + id, choice
	}
	return voter + name, choice
}

// addEnding adds the decision and the work that follows.
func (s *seeding) addEnding(p *filedProposal, submitted time.Time, end ending) {
	if end.status == "" {
		return
	}
	decided := submitted.Add(days(end.after))
	decision := end.status
	if decision == proposal.Resolved {
		decision = proposal.Approved
	}
	s.addDecision(p, end.by, decided, func() (proposal.Resolution, error) {
		r := proposal.Resolution{Status: decision, Note: end.note}
		if end.duplicate != "" {
			original := s.filed[end.duplicate]
			if original == nil || original.id == "" {
				return r, fmt.Errorf("there is no proposal %q yet", end.duplicate)
			}
			r.DuplicateOf = original.id
		}
		return r, nil
	})
	if end.reopened {
		s.addDecision(p, end.by, decided.Add(day), to(proposal.Open))
	}
	if decision == proposal.Approved {
		s.addWork(p, decided, end)
	}
}

// to returns a decision without a note.
func to(status proposal.Status) func() (proposal.Resolution, error) {
	return func() (proposal.Resolution, error) { return proposal.Resolution{Status: status}, nil }
}

// addDecision adds a change of the status by an admin. choose is called when its time has come.
func (s *seeding) addDecision(
	p *filedProposal, admin string, at time.Time, choose func() (proposal.Resolution, error),
) {
	s.by("user:"+admin, at, "decide "+p.String(), identity.ResolveProposal,
		func(ctx context.Context, a identity.Access) error {
			r, err := choose()
			if err != nil {
				return err
			}
			out, err := s.Proposals.Resolve(ctx, a, p.id, r)
			p.followup = out.Proposal.FollowupID
			return err
		})
}

// addWork adds what happens to the follow-up of an approved proposal.
func (s *seeding) addWork(p *filedProposal, decided time.Time, end ending) {
	if end.work.to == "" {
		return
	}
	left := s.line.end.Sub(decided)
	assigned := decided.Add(min(3*time.Hour, left/8))
	started := assigned.Add(min(day/2, left/8))
	done := started.Add(min(3*day, left/4))
	s.addChange(p, assigned, "user:"+end.by, followup.Edit{Assignee: &end.work.to})
	status := end.work.status
	switch {
	case strings.HasPrefix(end.work.to, "agent:"):
		s.addFollowupTask(p, end.work, started, done)
	case status == followup.Done:
		s.addStatus(p, started, end.work.to, followup.InProgress)
		s.addStatus(p, done, end.work.to, followup.Done)
	case status != followup.Open:
		s.addStatus(p, started, end.work.to, status)
	}
	if end.status == proposal.Resolved {
		s.addDecision(p, end.by, done.Add(time.Hour), to(proposal.Resolved))
	}
}

func (s *seeding) addStatus(p *filedProposal, at time.Time, by string, status followup.Status) {
	s.addChange(p, at, by, followup.Edit{Status: &status})
}

// addChange adds a change of the follow-up of a proposal.
func (s *seeding) addChange(p *filedProposal, at time.Time, by string, e followup.Edit) {
	s.by(by, at, "change the follow-up of "+p.String(), identity.ChangeFollowup,
		func(ctx context.Context, a identity.Access) error {
			_, err := s.Followups.Change(ctx, a, p.followup, e)
			return err
		})
}

// addChores adds follow-ups that people created by hand.
func (s *seeding) addChores() {
	for _, c := range []struct {
		title, by, to string
		age           float64
		status        followup.Status
	}{
		{"Book the room for the proposal review", "user:jonas", "user:jonas", 25, followup.Done},
		{"Order 60 badge readers for a test", "user:aiko", "", 1.5, followup.Open},
		{"Ask Nordhaul why their endpoint is down at 02:00", "user:tomas", "user:samuel", 2.4, followup.InProgress},
		{"Move the old status page to the archive", "user:maya", "user:noah", 11, followup.Canceled},
	} {
		made := s.line.before(s.line.ago(days(c.age)))
		p := &filedProposal{title: c.title}
		s.by(c.by, made, "create the follow-up "+c.title, identity.CreateFollowup,
			func(ctx context.Context, a identity.Access) error {
				out, err := s.Followups.Create(ctx, a, followup.Creation{Title: c.title, Assignee: c.to})
				p.followup = out.Followup.ID
				return err
			})
		if c.status == followup.Done {
			s.addStatus(p, made.Add(2*time.Hour), c.by, followup.InProgress)
		}
		if c.status != followup.Open {
			s.addStatus(p, made.Add(day), c.by, c.status)
		}
	}
}
