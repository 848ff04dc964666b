package agent

import "context"

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

// Release makes an agent private and gives up its public name, so that another org can take
// it. That org then receives the tasks of callers that still use the name.
func (o *Operator) Release(ctx context.Context, org, id string) (Agent, error) {
	now := o.registry.now()
	return o.registry.update(ctx, org, id, func(a Agent) (Agent, error) {
		a.Public, a.PublicName, a.UpdatedAt = false, false, now
		return a, nil
	})
}
