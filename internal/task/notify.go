package task

import (
	"context"
	"strings"
	"sync"
	"time"
)

// signals wakes whoever waits for an agent's work.
type signals struct {
	mu sync.Mutex
	m  map[AgentKey]chan struct{}
}

func newSignals() *signals { return &signals{m: map[AgentKey]chan struct{}{}} }

// wait returns a channel that closes at the next fire. Take it before you look,
// and you miss nothing.
func (s *signals) wait(key AgentKey) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.m[key]
	if c == nil {
		c = make(chan struct{})
		s.m[key] = c
	}
	return c
}

func (s *signals) fire(key AgentKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.m[key]; c != nil {
		close(c)
		delete(s.m, key)
	}
}

func (s *signals) fireAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.m {
		close(c)
		delete(s.m, key)
	}
}

// Topics of hints between nodes.
const (
	taskTopic  = "t:" // + org + "/" + uid
	queueTopic = "q:" // + org + "/" + agent
)

// publish tells this node and the others what a committed change means for them.
func (s *Tasks) publish(c Change) {
	if c.Task.Push {
		s.pusher.nudge()
	}
	if len(c.Events) == 0 {
		return
	}
	s.cache.drop(c.Task.key())
	ref := Ref{c.Task.Org, c.Task.UID}
	s.hub.publish(ref, c.Events)
	for i := range c.Events {
		if c.Events[i].Ended != "" {
			s.running.stop(c.Task.UID, c.Events[i].Lease)
		}
	}
	if s.Bus != nil {
		s.Bus.Publish(taskTopic + ref.Org + "/" + ref.UID)
	}
	if c.Task.Queued {
		s.queueChanged(AgentKey{c.Task.Org, c.Task.Agent})
	}
}

// queueChanged wakes the workers of an agent.
func (s *Tasks) queueChanged(agent AgentKey) {
	s.queues.fire(agent)
	s.runners.backlog(agent)
	if s.Bus != nil {
		s.Bus.Publish(queueTopic + agent.Org + "/" + agent.ID)
	}
}

// Hint is called with every topic that another node published.
func (s *Tasks) Hint(ctx context.Context, topic string) {
	if rest, ok := strings.CutPrefix(topic, queueTopic); ok {
		if org, id, ok := strings.Cut(rest, "/"); ok {
			s.queues.fire(AgentKey{org, id})
			s.runners.backlog(AgentKey{org, id})
		}
		return
	}
	if rest, ok := strings.CutPrefix(topic, taskTopic); ok {
		if org, uid, ok := strings.Cut(rest, "/"); ok {
			s.hub.hint(ctx, Ref{org, uid})
			s.checkRunning(ctx, org, uid)
		}
	}
}

// How often the background work is done.
const (
	expireEvery = 500 * time.Millisecond
	pollEvery   = 2 * time.Second
	maxExpired  = 100
)

// Run does the background work until ctx ends: leases expire, agents of this
// process take what waits, and what no hint told is found.
func (s *Tasks) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	every := pollEvery
	if s.Bus == nil {
		every = 5 * pollEvery // nobody else writes; only a failed read needs it
		if err := s.takeOver(ctx); err != nil && ctx.Err() == nil {
			s.OnError(err)
		}
	}
	wg.Go(func() { s.hub.poll(ctx, every, s.OnError) })
	wg.Go(func() { s.runners.run(ctx) })
	wg.Go(func() { s.pusher.run(ctx) })
	expire, poll := time.NewTicker(expireEvery), time.NewTicker(pollEvery)
	defer expire.Stop()
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-expire.C:
			if err := s.expire(ctx); err != nil && ctx.Err() == nil {
				s.OnError(err)
			}
		case <-poll.C:
			if s.Bus != nil {
				s.queues.fireAll()
				s.runners.backlogAll()
			}
		}
	}
}

// expire takes tasks from lost workers until none is left.
func (s *Tasks) expire(ctx context.Context) error {
	for {
		now := s.Now()
		changes, err := s.Store.ExpireLeases(ctx, maxExpired, func(cur Current) (Change, error) {
			return decideExpire(cur.Task, now, cur.Clock)
		})
		for _, c := range changes {
			s.publish(c)
		}
		if err != nil || len(changes) < maxExpired {
			return err
		}
	}
}

// Sweep deletes what is older than it need be, a bounded number of rows a call,
// and reports how many it deleted.
func (s *Tasks) Sweep(ctx context.Context, retention time.Duration) (int, error) {
	const most = 500
	now := s.Now()
	n, err := s.Store.SweepMessages(ctx, now.Add(-KeepMessages), most)
	if err != nil || retention <= 0 {
		return n, err
	}
	m, err := s.Store.SweepTasks(ctx, now.Add(-retention), most)
	if m > 0 {
		s.cache.clear()
	}
	return n + m, err
}

// HintAll is called when hints may have been lost: everything is looked at.
func (s *Tasks) HintAll(ctx context.Context) {
	s.queues.fireAll()
	s.runners.backlogAll()
	for _, ref := range s.hub.refs() {
		s.hub.hint(ctx, ref)
	}
}
