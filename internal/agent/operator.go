package agent

import (
	"context"
	"errors"
)

// Operator is what the operator does to the agents of any org, with direct access to the
// data. No transport serves it, so it takes no Access.
type Operator struct{ registry *Registry }

// NewOperator returns the service. The directory of the registry sees its changes at once.
func NewOperator(r *Registry) *Operator { return &Operator{registry: r} }

// Create registers an agent of the org that it names.
func (o *Operator) Create(ctx context.Context, a Agent) (Agent, error) {
	return o.registry.create(ctx, a)
}

// List returns the agents of an org.
func (o *Operator) List(ctx context.Context, org string) ([]Agent, error) {
	return o.registry.store.List(ctx, org)
}

// Builtin returns the agents of all orgs that run inside the server.
func (o *Operator) Builtin(ctx context.Context) ([]Agent, error) {
	return o.registry.store.Builtin(ctx)
}

// IndexWords makes the words by which the catalogue finds agents, where they are missing: in a store
// of an earlier version, and after a change by a server of one.
func (o *Operator) IndexWords(ctx context.Context) error {
	const most = 100 // other writes wait for the transaction
	for {
		n, err := o.registry.store.IndexWords(ctx, most)
		if err != nil || n < most {
			return err
		}
	}
}

// Mirror sets what a relay has from the remote's card. It does nothing if the relay has another remote
// or credential by now.
func (o *Operator) Mirror(ctx context.Context, org, id string, r Relay, skills []Skill) error {
	now := o.registry.now()
	_, err := o.registry.update(ctx, org, id, func(a Agent) (Agent, error) {
		return decideEdit(a, Edit{Relay: &r, Known: &r, Skills: &skills}, now)
	})
	if errors.Is(err, ErrRelayChanged) {
		err = nil // its card was read, too, or is read soon
	}
	return err
}

// Release makes an agent private and gives up its public name, so that another org can take
// it. That org then receives the tasks of callers that still use the name.
func (o *Operator) Release(ctx context.Context, org, id string) (Agent, error) {
	now := o.registry.now()
	return o.registry.update(ctx, org, id, func(a Agent) (Agent, error) {
		a.Public, a.PublicName, a.UpdatedAt = false, false, now
		return a, nil
	})
}
