package worker

import (
	"context"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

const (
	claimWait = 20 * time.Second
	// fullFor is how long the worker must be full before it asks for direct messages alone, which
	// also tells the server that it is still alive.
	fullFor = time.Second
)

// claimLoop takes work until ctx ends or the server refuses permanently.
func (s *shift) claimLoop(ctx context.Context) error {
	var pause backoff
	for ctx.Err() == nil {
		s.awaitRoom(ctx)
		room := s.reserve()
		answer, err := s.claim(ctx, room)
		switch {
		case ctx.Err() != nil:
			// The server notices that the response was not received, and keeps the task.
		case err == nil:
			pause.reset()
			s.take(answer.Tasks)
		default:
			s.release(room)
			wait, again := pause.next(err)
			if !again {
				return err
			}
			s.log.Warn("claim failed; trying again",
				"agent", s.agent, "in", wait.Round(time.Millisecond), "error", err)
			sleep(ctx, wait)
			continue
		}
		s.release(room)
	}
	return nil
}

// awaitRoom waits for a free slot, or until the server has not heard of this worker for a while.
func (s *shift) awaitRoom(ctx context.Context) {
	full := time.NewTimer(fullFor)
	defer full.Stop()
	for s.free() <= 0 {
		select {
		case <-s.freed:
		case <-ctx.Done():
			return
		case <-full.C:
			left := fullFor - s.outbox.idle()
			if left <= 0 {
				return
			}
			full.Reset(left)
		}
	}
}

func (s *shift) request(most int, wait time.Duration) client.ClaimRequest {
	return client.ClaimRequest{
		Worker: s.name, Max: most, WaitSeconds: int(wait / time.Second),
		LeaseSeconds: int(s.lease / time.Second), Capacity: s.capacity, Ack: s.mail.unacknowledged(),
	}
}

// claim asks for work. Without a free slot it asks for direct messages, until there is one.
func (s *shift) claim(ctx context.Context, room int) (*client.Claim, error) {
	asked, cancel := context.WithTimeout(ctx, claimWait+reportTimeout)
	defer cancel()
	if room <= 0 {
		go s.cancelWhenFree(asked, cancel)
	}
	req := s.request(room, claimWait)
	answer, err := s.leases.Claim(asked, req, once)
	if err != nil && room <= 0 && s.free() > 0 {
		return &client.Claim{}, nil // canceled on purpose; the acks go with the next claim
	}
	if err == nil {
		s.receive(req.Ack, answer.Messages)
	}
	return answer, err
}

func (s *shift) cancelWhenFree(ctx context.Context, cancel context.CancelFunc) {
	for {
		select {
		case <-s.freed:
			if s.free() > 0 {
				cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// receive passes on direct messages that have arrived with the response to a request with these
// acknowledgements.
func (s *shift) receive(acked []string, messages []DirectMessage) {
	s.inbox.put(s.mail.receive(acked, messages)...)
}

func (s *shift) take(tasks []client.ClaimedTask) {
	for _, t := range tasks {
		s.begin(t)
	}
}
