package worker

import (
	"context"
	"slices"
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
		answer, err := s.claim(ctx, s.room(ctx))
		switch {
		case ctx.Err() != nil:
			// The server notices that the response was not received, and keeps the task.
		case err == nil:
			pause.reset()
			s.take(answer)
		default:
			wait, again := pause.next(err)
			if !again {
				return err
			}
			s.log.Warn("claim failed; trying again",
				"agent", s.agent, "in", wait.Round(time.Millisecond), "error", err)
			sleep(ctx, wait)
		}
	}
	return nil
}

// room waits a moment for a free slot and returns how many there are.
func (s *shift) room(ctx context.Context) int {
	n := s.free()
	if n > 0 {
		return n
	}
	select {
	case <-s.freed:
	case <-ctx.Done():
	case <-time.After(fullFor):
	}
	return s.free()
}

func (s *shift) request(most int, wait time.Duration) client.ClaimRequest {
	return client.ClaimRequest{
		Worker: s.name, Max: min(most, maxClaim), WaitSeconds: int(wait / time.Second),
		LeaseSeconds: int(s.lease / time.Second), Capacity: s.capacity, Ack: s.acks,
	}
}

// claim asks for work. Without a free slot it asks for direct messages, until there is one.
func (s *shift) claim(ctx context.Context, room int) (*client.Claim, error) {
	asked, cancel := context.WithTimeout(ctx, claimWait+reportTimeout)
	defer cancel()
	if room <= 0 {
		go func() {
			select {
			case <-s.freed:
				cancel()
			case <-asked.Done():
			}
		}()
	}
	answer, err := s.leases.Claim(asked, s.request(room, claimWait), once)
	if err != nil && room <= 0 && s.free() > 0 {
		return &client.Claim{}, nil // canceled on purpose; the acks go with the next claim
	}
	if err == nil {
		answer.Messages = s.unseen(answer.Messages)
		s.acks = nil
		for _, m := range answer.Messages {
			s.acks = append(s.acks, m.ID)
		}
	}
	return answer, err
}

// unseen removes messages that were delivered twice.
func (s *shift) unseen(messages []DirectMessage) []DirectMessage {
	return slices.DeleteFunc(messages, func(m DirectMessage) bool { return slices.Contains(s.acks, m.ID) })
}

func (s *shift) take(a *client.Claim) {
	s.inbox.put(a.Messages...)
	for _, t := range a.Tasks {
		s.begin(t)
	}
}
