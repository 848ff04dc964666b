package worker

import (
	"context"

	"github.com/parley-dev/parley/sdk/client"
)

// Friction is something that got in the agent's way.
type Friction = client.FrictionReport

// FrictionCount is the result of a report.
type FrictionCount = client.FrictionOutcome

// Friction reports what got in the agent's way, in the agent's org. Call it each time, with the
// same fingerprint: the report that reaches the org's threshold (default three) files a proposal
// with the collected evidence. The key also needs the scope svc:tasks:write, and must belong to an
// agent or a user.
//
// A report is repeated when the server does not respond, and counts once.
func (w *Worker) Friction(ctx context.Context, f Friction) (FrictionCount, error) {
	out, err := w.api.Friction.Report(ctx, f)
	if err != nil {
		return FrictionCount{}, err
	}
	return *out, nil
}

// Friction is Worker.Friction with the task as its occurrence, unless the report has one: a second
// attempt of the same task counts once.
func (t *Task) Friction(ctx context.Context, f Friction) (FrictionCount, error) {
	if f.Occurrence == "" {
		f.Occurrence = t.ID
	}
	return t.hold.Friction(ctx, f)
}
