package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// improved is how many orders in pounds must pass after the fix before the fleet counts as improved.
const improved = 2

// byHand is how intake's result begins if it cannot read an order.
const byHand = "by hand:"

// shop sends orders to the fleet.
type shop struct {
	settings
	*site
	orders, passed int
}

func newShop(s settings, site *site) *shop { return &shop{settings: s, site: site} }

// sell sends orders until ctx ends, or the fleet has improved if it should end then.
func (s *shop) sell(ctx context.Context) error {
	till, err := client.New(client.Config{URL: s.url, Key: s.site.shop})
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- s.decide(ctx) }()
	next := time.NewTicker(s.pause)
	defer next.Stop()
	for {
		if err := s.order(ctx, till); err != nil {
			return err
		}
		if s.passed == improved {
			s.passed++ // say it once
			say("the fleet has improved: orders in pounds pass without a person")
			if s.once {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			if err != nil {
				return err
			}
			failed = nil
		case <-next.C:
		}
	}
}

var goods, cities = []string{"tea", "cups", "honey"}, []string{"Oslo", "Porto", "Graz", "Lyon"}

// order passes one order from agent to agent.
func (s *shop) order(ctx context.Context, till *client.Client) error {
	s.orders++
	amount, pounds := fmt.Sprintf("%d kg", 1+s.orders%7), s.orders%2 == 0
	if pounds {
		amount = fmt.Sprintf("%d lb", 2+s.orders%9)
	}
	text := fmt.Sprintf("%s of %s to %s", amount, goods[s.orders%len(goods)], cities[s.orders%len(cities)])
	read, err := ask(ctx, till, "intake", text)
	if err != nil {
		return err
	}
	if strings.HasPrefix(read, byHand) {
		say("order %-3d %s: a person must read it", s.orders, text)
		return nil
	}
	price, err := ask(ctx, till, "pricing", read)
	if err != nil {
		return err
	}
	way, err := ask(ctx, till, "dispatch", read)
	if err != nil {
		return err
	}
	say("order %-3d %s: %s, %s, %s", s.orders, text, read, price, way)
	if pounds {
		s.passed++
	}
	return nil
}

// ask sends a task and returns its result.
func ask(ctx context.Context, c *client.Client, agent, text string) (string, error) {
	t, err := c.Agent(agent).Send(ctx, client.SendParams{
		Message: client.NewMessage(client.Text(text)), Wait: 30 * time.Second,
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", agent, err)
	}
	if t.Status.State != client.TaskCompleted {
		reason := ""
		if t.Status.Message != nil {
			reason = t.Status.Message.Text()
		}
		return "", fmt.Errorf("%s: %q is %s: %s", agent, text, t.Status.State, reason)
	}
	return t.Artifacts[0].Text(), nil
}

// decide approves the first proposal if nobody else does in time, and gives its follow-up to the agent
// that reported what got in its way.
func (s *shop) decide(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := client.New(client.Config{URL: s.url, Key: s.admin})
	if err != nil {
		return err
	}
	o := client.EventsOptions{Since: time.Unix(0, 0), Types: []string{"proposal.submitted", "proposal.approved"}}
	var due <-chan time.Time
	events := make(chan client.OrgEvent)
	failed := make(chan error, 1)
	go func() {
		for e, err := range c.FollowEvents(ctx, o) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	for id := ""; ; {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-due:
			due = nil
			say("nobody has decided: you approve %s", id)
			if _, err := c.Proposals.Update(ctx, id, client.ProposalPatch{Status: new(client.ProposalApproved)}); err != nil {
				return err
			}
		case e := <-events:
			_, id, _ = strings.Cut(e.Subject, ":")
			if e.Type == "proposal.submitted" {
				say("%s has filed %s; vote and decide:\n\n    %s/dashboard/proposals/%s\n", e.Actor, id, s.url, id)
				if s.patience > 0 {
					due = time.After(s.patience)
				}
				continue
			}
			p, err := c.Proposals.Get(ctx, id)
			if err != nil {
				return err
			}
			say("%s is approved: its follow-up goes to %s", id, p.SubmittedBy)
			_, err = c.Followups.Update(ctx, p.FollowupID, client.FollowupPatch{Assignee: new(p.SubmittedBy)})
			return err
		}
	}
}
