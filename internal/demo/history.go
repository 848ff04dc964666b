package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// errand is a task of the past: a job that was sent once.
type errand struct {
	job
	age  time.Duration
	fate fate
	push bool // the sender asked for pushes to a receiver that is gone
}

// fate is how far an errand got.
type fate int

const (
	ended      fate = iota // as the job says; a question was answered
	unanswered             // its question still waits
	canceled               // by the sender, in the middle
	queued                 // no worker has claimed it
	handedBack             // the first worker stopped, and another one did it
)

// errands returns the tasks of the last two weeks: a few each day, and more today.
func errands() []errand {
	const before, today = 34, 14
	var list []errand
	for n := range before {
		list = append(list, errand{job: jobs[n%len(jobs)], age: 14*day - time.Duration(n)*(13*day/before)})
	}
	list[9].fate, list[16].fate, list[21].fate, list[25].fate = canceled, handedBack, canceled, handedBack
	list[30].push = true
	for n := range today {
		list = append(list, errand{job: jobs[(n+2)%len(jobs)], age: 7*time.Hour - time.Duration(n)*29*time.Minute})
	}
	list[before+5].fate = canceled
	for _, n := range []int{2, 6, 7, 12, 13} { // the pages of agents show a person's own tasks
		list[before+n].sender = "user:" + Founding.Admin
	}
	return append(append(list, waiting()...), contracts()...)
}

// waiting returns tasks whose questions nobody has answered yet.
func waiting() []errand {
	refund, runbook := jobs[4], jobs[11]
	refund.text = refund.about(36)
	runbook.sender = "user:" + Founding.Admin
	return []errand{
		{job: refund, age: 55 * time.Minute, fate: unanswered},
		{job: runbook, age: 5*time.Hour + 10*time.Minute, fate: unanswered},
	}
}

// contracts returns the tasks of the agent that is offline: its worker stopped two days ago.
func contracts() []errand {
	list := []errand{{job: contractJobs[0], age: 6 * day}, {job: contractJobs[1], age: 2*day + time.Hour}}
	for n, text := range []string{
		"Which liability limit has the contract with Baltic Pallets, version 2023?",
		"Find all contracts that end before 1 March",
		"Compare the fuel clauses of Nordhaul and Kotka Terminal",
	} {
		j := job{agent: offline, sender: "user:aiko", text: text}
		list = append(list, errand{job: j, age: time.Duration(44-15*n) * time.Hour, fate: queued})
	}
	return list
}

// story is an errand while it is written.
type story struct {
	errand
	uid, id string
	lease   string
	at      time.Time // of the last step
}

const (
	claimAfter  = 9 * time.Second
	reportEvery = 21 * time.Second
	answerAfter = 11 * time.Minute
)

// addErrand adds the steps of an errand to the timeline.
func (s *seeding) addErrand(n int, e errand) {
	st := &story{errand: e, at: s.line.before(s.line.ago(e.age))}
	st.text, st.id = e.about(n), e.job.id(n)
	s.then(st, 0, "send", s.send)
	if e.fate == queued {
		return
	}
	if e.fate == handedBack {
		s.then(st, claimAfter, "claim", s.claim)
		s.then(st, reportEvery, "return", s.giveBack)
	}
	s.then(st, claimAfter, "claim", s.claim)
	reports := e.begin()
	if e.fate == canceled {
		s.addReports(st, reports[:len(reports)/2])
		s.then(st, reportEvery, "cancel", s.cancel)
		return
	}
	s.addReports(st, reports)
	if e.question == "" || e.fate == unanswered {
		return
	}
	s.then(st, answerAfter, "answer", s.answer)
	s.then(st, claimAfter, "claim", s.claim)
	s.addReports(st, e.finish())
}

// then adds the next step of a story.
func (s *seeding) then(st *story, pause time.Duration, what string, do func(context.Context, *story) error) {
	st.at = st.at.Add(s.line.about(pause))
	s.line.at(st.at, fmt.Sprintf("%s task %q", what, st.text), func(ctx context.Context) error { return do(ctx, st) })
}

func (s *seeding) addReports(st *story, list []task.Report) {
	for _, r := range list {
		s.then(st, reportEvery, "report on", func(ctx context.Context, st *story) error {
			post, err := s.post(ctx, st.agent)
			if err != nil {
				return err
			}
			_, err = s.Workers.Report(ctx, post, st.lease, r)
			return err
		})
	}
}

func (s *seeding) send(ctx context.Context, st *story) error {
	call, err := s.call(ctx, st.sender, st.agent)
	if err != nil {
		return err
	}
	r := dispatch.SendRequest{ID: st.id, Message: says(st.text)}
	if st.push && s.Tasks.Pushes() {
		r.Push = &task.PushConfig{URL: s.receiver + gonePath, Form: task.PushV1}
	}
	t, err := s.Tasks.Send(ctx, call, r, 0)
	st.uid = t.UID
	return err
}

func (s *seeding) answer(ctx context.Context, st *story) error {
	call, err := s.call(ctx, st.sender, st.agent)
	if err != nil {
		return err
	}
	_, err = s.Tasks.Send(ctx, call, dispatch.SendRequest{ID: st.id, Message: says(st.errand.answer), MustExist: true}, 0)
	return err
}

func (s *seeding) cancel(ctx context.Context, st *story) error {
	call, err := s.call(ctx, st.sender, st.agent)
	if err != nil {
		return err
	}
	_, err = s.Tasks.Cancel(ctx, call, st.id, task.Content{})
	return err
}

func (s *seeding) claim(ctx context.Context, st *story) (err error) {
	st.lease, err = s.take(ctx, st.agent, st.uid)
	return err
}

func (s *seeding) giveBack(ctx context.Context, st *story) error {
	post, err := s.post(ctx, st.agent)
	if err != nil {
		return err
	}
	return s.Workers.Return(ctx, post, st.lease)
}

// take claims a task. An agent gets its oldest task first; one that another story will claim is
// kept for it.
func (s *seeding) take(ctx context.Context, agent, uid string) (lease string, err error) {
	post, err := s.post(ctx, agent)
	if err != nil {
		return "", err
	}
	for s.leases[uid] == "" {
		claim, err := s.Workers.Claim(ctx, post, dispatch.ClaimRequest{
			Worker: workers[agent][0], Max: 1, Lease: task.MaxLease, Capacity: capacity,
		})
		if err != nil {
			return "", err
		}
		if len(claim.Assignments) == 0 {
			return "", fmt.Errorf("%s has no task to claim", agent)
		}
		for _, a := range claim.Assignments {
			s.leases[a.Task.UID] = a.Lease.Token
		}
	}
	lease = s.leases[uid]
	delete(s.leases, uid)
	return lease, nil
}

// addFollowupTask adds the work of an agent on a follow-up, which the assignment has sent to it.
func (s *seeding) addFollowupTask(p *filedProposal, w work, started, done time.Time) {
	agent := w.to[len("agent:"):]
	lease := ""
	s.line.at(started, "claim the follow-up of "+p.String(), func(ctx context.Context) error {
		f, err := s.followup(ctx, p.followup)
		if err != nil {
			return err
		}
		lease, err = s.take(ctx, agent, f.TaskUID)
		return err
	})
	report := func(at time.Time, r task.Report) {
		s.line.at(at, "work on the follow-up of "+p.String(), func(ctx context.Context) error {
			post, err := s.post(ctx, agent)
			if err != nil {
				return err
			}
			_, err = s.Workers.Report(ctx, post, lease, r)
			return err
		})
	}
	report(started.Add(time.Minute), task.Report{State: task.Working, Message: task.Says("I have read the proposal.")})
	if w.status == "done" {
		report(done, task.Report{State: task.Completed, Message: task.Says("Done as described in the proposal.")})
		return
	}
	report(started.Add(time.Hour), task.Report{
		State: task.InputRequired, Message: task.Says("The first table is ready. Who receives it on Fridays?"),
	})
}

func says(text string) task.Message {
	return task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}
}
