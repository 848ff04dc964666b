package dispatch

import (
	"context"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
)

// AgentDirectory returns the Directory of the registered agents.
func AgentDirectory(d *agent.Directory) Directory { return agentDirectory{d} }

type agentDirectory struct{ agents *agent.Directory }

// Target implements Directory.
func (d agentDirectory) Target(ctx context.Context, org, id string) (Target, *Target, error) {
	a, other, err := d.agents.Reach(ctx, org, id)
	if err != nil || other == nil {
		return TargetOf(&a), nil, err
	}
	hidden := TargetOf(other)
	return TargetOf(&a), &hidden, nil
}

// Own implements Directory.
func (d agentDirectory) Own(ctx context.Context, org, id string) (Target, error) {
	a, err := d.agents.Own(ctx, org, id)
	if err == nil && a.Disabled {
		err = errs.ErrNotFound
	}
	return TargetOf(&a), err
}

// TargetOf returns an agent as tasks see it.
func TargetOf(a *agent.Agent) Target {
	return Target{
		ID: a.ID, Org: a.Org, Public: a.Public, Relay: a.Builtin == agent.Relayed, Policy: a.Policy, Quota: a.Quota,
	}
}
