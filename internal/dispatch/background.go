package dispatch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/task"
)

// Stop ends all waits, so that waiting requests return soon.
func (s *Service) Stop() { s.board.stop() }

// Stopping is closed by Stop.
func (s *Service) Stopping() <-chan struct{} { return s.board.stopping.Done() }

// How often the background work is done.
const (
	expireEvery = 500 * time.Millisecond
	pollEvery   = 2 * time.Second
	maxExpired  = 100
)

// Run does the background work until ctx ends: it expires leases, keeps deadlines, runs the hosted agents and
// polls for changes that no hint announced.
func (s *Service) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	b := s.board
	every := pollEvery
	if b.bus == nil {
		every = 5 * pollEvery // no other node writes, so this only repeats failed reads
		if err := s.takeOver(ctx); err != nil && ctx.Err() == nil {
			b.onError(err)
		}
	}
	wg.Go(func() { b.hub.Poll(ctx, every, b.onError) })
	wg.Go(func() { b.hosts.run(ctx) })
	expire, poll, presence := time.NewTicker(expireEvery), time.NewTicker(pollEvery), time.NewTicker(presenceEvery)
	defer expire.Stop()
	defer poll.Stop()
	defer presence.Stop()
	started := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-expire.C:
			if err := errors.Join(s.expire(ctx), s.wake(ctx)); err != nil && ctx.Err() == nil {
				b.onError(err)
			}
		case <-poll.C:
			if b.bus != nil {
				b.queues.fireAll()
				b.hosts.backlogAll()
			}
		case <-presence.C:
			if time.Since(started) < GoneAfter {
				continue // no server may have run for a while, and the workers come back now
			}
			if err := s.updatePresences(ctx); err != nil && ctx.Err() == nil {
				b.onError(err)
			}
		}
	}
}

// updatePresences records which agents went online or offline.
func (s *Service) updatePresences(ctx context.Context) error {
	for {
		n, err := s.Workers.store.UpdatePresences(ctx, s.board.now())
		if err != nil || n == 0 {
			return err
		}
	}
}

// expire returns tasks with expired leases to the queue.
func (s *Service) expire(ctx context.Context) error {
	for {
		now := s.board.now()
		changes, err := s.queue.Expire(ctx, maxExpired, func(cur task.Current) (task.Change, error) {
			return task.DecideExpire(cur.Task, now, cur.Clock)
		})
		s.expired.Add(int64(len(changes)))
		for _, c := range changes {
			s.board.publish(c)
		}
		if err != nil || len(changes) < maxExpired {
			return err
		}
	}
}

// wake fails tasks whose deadline has passed, and queues tasks whose next attempt is due.
func (s *Service) wake(ctx context.Context) error {
	for {
		now := s.board.now()
		changes, err := s.queue.Wake(ctx, maxExpired, func(cur task.Current) (task.Change, error) {
			return task.DecideWake(cur.Task, now, cur.Clock)
		})
		for _, c := range changes {
			s.board.publish(c)
		}
		if err != nil || len(changes) < maxExpired {
			return err
		}
	}
}

// CacheStats counts look-ups of whole tasks.
func (s *Service) CacheStats() cache.Stats { return s.board.cache.Stats() }

// LeasesExpired returns how many leases this node has ended because they expired.
func (s *Service) LeasesExpired() int64 { return s.expired.Load() }

// takeOver returns tasks to the queue that a former server process held when it ended. It must
// run only if this is the only node: otherwise the leases may belong to other nodes.
func (s *Service) takeOver(ctx context.Context) error {
	for {
		now := s.board.now()
		changes, err := s.queue.LeasesOf(ctx, task.HostPrefix, maxExpired, func(cur task.Current) (task.Change, error) {
			if cur.Task.Lease.Worker == s.board.hostName() {
				return task.Change{Task: cur.Task}, nil // leased by this process since its start
			}
			return task.DecideReturn(cur.Task, cur.Task.Lease.Token, now, time.Time{})
		})
		for _, c := range changes {
			s.board.publish(c)
		}
		if err != nil || len(changes) < maxExpired {
			return err
		}
	}
}

// Hint handles a topic that another node published.
func (s *Service) Hint(ctx context.Context, topic string) {
	if rest, ok := strings.CutPrefix(topic, queueTopic); ok {
		if org, id, ok := strings.Cut(rest, "/"); ok {
			s.board.queues.fire(task.AgentKey{Org: org, ID: id})
			s.board.hosts.backlog(task.AgentKey{Org: org, ID: id})
		}
		return
	}
	if rest, ok := strings.CutPrefix(topic, taskTopic); ok {
		if org, uid, ok := strings.Cut(rest, "/"); ok {
			s.board.hub.Hint(ctx, task.Ref{Org: org, UID: uid})
			s.checkRunning(ctx, org, uid)
		}
	}
}

// checkRunning looks at a task that is worked on here, after another node has changed it. It stops the
// work if the lease has ended.
func (s *Service) checkRunning(ctx context.Context, org, uid string) {
	lease := s.board.running.of(uid)
	if lease == "" {
		return
	}
	t, err := s.board.read.Row(ctx, org, uid)
	switch {
	case err != nil:
	case t.Lease.Token != lease || !t.Lease.Live():
		s.board.running.stop(uid, lease)
	case t.Seq > t.Delivered:
		s.board.running.tell(uid)
	}
}

// HintAll checks everything, because hints may have been lost.
func (s *Service) HintAll(ctx context.Context) {
	s.board.queues.fireAll()
	s.board.hosts.backlogAll()
	s.board.hub.HintAll(ctx)
}

// Sweep deletes old messages and ended tasks. It deletes a bounded number of rows and returns
// how many. Callers repeat it, so it then waits for as long as it took: on a store with a single
// writer, other writes wait for one of its transactions at most.
func (s *Service) Sweep(ctx context.Context, retention time.Duration) (int, error) {
	begun := time.Now()
	n, err := s.sweep(ctx, retention)
	if n > 0 {
		select {
		case <-time.After(time.Since(begun)):
		case <-ctx.Done():
		}
	}
	return n, err
}

func (s *Service) sweep(ctx context.Context, retention time.Duration) (int, error) {
	const most = 100 // of each: other writes wait for the transaction
	now := s.board.now()
	n, err := s.mailbox.Sweep(ctx, now.Add(-KeepMessages), most)
	if err != nil || retention <= 0 {
		return n, err
	}
	m, err := s.stock.Sweep(ctx, now.Add(-retention), most)
	if m > 0 {
		s.board.cache.Clear()
	}
	return n + m, err
}
