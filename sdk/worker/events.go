package worker

import (
	"context"
	"iter"

	"github.com/parley-dev/parley/sdk/client"
)

// OrgEvent reports a change in the agent's org, such as a new proposal.
type OrgEvent = client.OrgEvent

// EventsOptions selects events.
type EventsOptions = client.EventsOptions

// ErrEventsReset is yielded by Events when events after the last known one are no longer kept. The
// iterator continues with the oldest event.
var ErrEventsReset = client.ErrEventsReset

// Events iterates over the events of the agent's org, and then over new ones as they happen, until
// ctx ends; see [client.Client.FollowEvents]. The key also needs the scope
// svc:tasks:read.
func (w *Worker) Events(ctx context.Context, o EventsOptions) iter.Seq2[OrgEvent, error] {
	return w.api.FollowEvents(ctx, o)
}
