package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// Company is the company while the server runs: workers do the tasks of all agents but one, and
// its members send tasks, vote and propose.
type Company struct {
	Services // of the running server
	now      func() time.Time
	onError  func(error)
	beat     time.Duration                             // the shortest pause between two reports of a worker
	pace     func(running time.Duration) time.Duration // the pause between two acts of the members
	acts     int                                       // after which the members rest

	mu   sync.Mutex
	rand *rand.Rand
}

// NewCompany returns a company with the pace of the demo.
func NewCompany(s Services, now func() time.Time, onError func(error)) *Company {
	return &Company{
		Services: s, now: now, onError: onError, beat: 2 * time.Second, pace: pause, acts: maxActs, rand: newRand(),
	}
}

// The pace of the members. A demo that runs for an hour looks alive; one that was forgotten for a
// week must not fill the disk. The pause grows with the time, and after maxActs nothing is added.
const (
	minPause = 6 * time.Second
	maxPause = 5 * time.Minute
	maxActs  = 5000
	slowing  = 200 // the pause is this part of the time that the server has been running
	atOnce   = 5   // acts at the start, so that agents are at work when the first page is opened
)

func pause(running time.Duration) time.Duration {
	return min(max(running/slowing, minPause), maxPause)
}

// Run plays the company until ctx ends.
func (c *Company) Run(ctx context.Context) {
	var all sync.WaitGroup
	for agent, names := range workers {
		if agent == offline {
			continue
		}
		for _, name := range names {
			all.Go(func() { c.work(ctx, agent, name) })
		}
	}
	all.Go(func() { c.live(ctx) })
	all.Wait()
}

// live lets the members act, one after the other.
func (c *Company) live(ctx context.Context) {
	start := c.now()
	m := &members{Company: c}
	for n := range c.acts {
		if n >= atOnce && !c.sleep(ctx, c.pace(c.now().Sub(start))) {
			return
		}
		if c.report(ctx, m.act(ctx, n)) && !c.sleep(ctx, beatsAfter*c.beat) {
			return
		}
	}
}

// members are the people and services of the company, who send and answer tasks.
type members struct {
	*Company
	asked    []sent // tasks whose agent will ask a question
	last     sent
	proposed int
}

// sent is a task that was sent at one of the acts.
type sent struct {
	job
	call dispatch.Call
	id   string
	at   int
}

// How often each kind of act is due, in acts.
const (
	voteEvery    = 4
	proposeEvery = 45
	cancelEvery  = 17
	answerActs   = 6  // acts between a question and its answer
	afterHistory = 60 // numbers go on after those of the past
)

func (m *members) act(ctx context.Context, n int) error {
	if err := m.answer(ctx, n); err != nil {
		return err
	}
	switch {
	case n%proposeEvery == proposeEvery-1 && m.proposed < len(laterIdeas):
		return m.propose(ctx)
	case n%voteEvery == voteEvery-1:
		return m.voteOnSomething(ctx, n)
	case n%cancelEvery == cancelEvery-1 && m.last.id != "":
		return settled(m.cancelLast(ctx))
	}
	return m.sendJob(ctx, n)
}

func (m *members) sendJob(ctx context.Context, n int) error {
	j := jobs[(n*5+3)%len(jobs)] // another agent each time
	call, err := m.call(ctx, j.sender, j.agent)
	if err != nil {
		return err
	}
	nth := afterHistory + n
	r := dispatch.SendRequest{ID: j.id(nth), Message: says(j.about(nth))}
	if _, err := m.Tasks.Send(ctx, call, r, 0); err != nil {
		return err
	}
	m.last = sent{j, call, r.ID, n}
	if j.question != "" {
		m.asked = append(m.asked, m.last)
	}
	return nil
}

// answer answers the oldest question, if it is due and nobody has answered it.
func (m *members) answer(ctx context.Context, n int) error {
	if len(m.asked) == 0 || n < m.asked[0].at+answerActs {
		return nil
	}
	q := m.asked[0]
	m.asked = m.asked[1:]
	t, err := m.Tasks.Get(ctx, q.call, q.id, task.Content{})
	if err != nil || t.State != task.InputRequired {
		return settled(err)
	}
	_, err = m.Tasks.Send(ctx, q.call, dispatch.SendRequest{ID: q.id, Message: says(q.job.answer), MustExist: true}, 0)
	return settled(err)
}

func (m *members) cancelLast(ctx context.Context) error {
	_, err := m.Tasks.Cancel(ctx, m.last.call, m.last.id, task.Content{})
	return err
}

// settled forgives what a person at the dashboard did first.
func settled(err error) error {
	if k := errs.KindOf(err); err != nil && (k == errs.Conflict || k == errs.NotFound || k == errs.Invalid) {
		return nil
	}
	return err
}

// propose files the next idea of the company.
func (m *members) propose(ctx context.Context) error {
	i := &laterIdeas[m.proposed]
	m.proposed++
	access, err := m.as(i.by, identity.SubmitProposal)
	if err != nil {
		return err
	}
	_, err = m.Proposals.Submit(ctx, access, i.submission())
	return err
}

// voteOnSomething lets a member vote on an open proposal, if it has not voted on it.
func (m *members) voteOnSomething(ctx context.Context, n int) error {
	voter := voters[n/voteEvery%len(voters)]
	access, err := m.as(voter, identity.ListProposals)
	if err != nil {
		return err
	}
	page, err := m.Proposals.List(ctx, access, proposal.Query{Status: proposal.Open, Sort: proposal.SortNewest})
	if err != nil {
		return err
	}
	for i := range page.Items {
		if p := &page.Items[i]; p.MyVote == "" && p.SubmittedBy != voter {
			return settled(m.vote(ctx, p.ID, voter, proposal.Ballot{Choice: proposal.For}))
		}
	}
	return nil
}

// report reports an error, unless the server stops. It returns whether there was one.
func (c *Company) report(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	c.onError(err)
	return true
}

// sleep waits. It returns false if ctx ends first.
func (c *Company) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// upTo returns a random duration.
func (c *Company) upTo(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.rand.Int64N(int64(d) + 1))
}
