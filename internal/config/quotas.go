package config

import (
	"fmt"

	"github.com/parley-dev/parley/internal/chain"
)

// Quotas limit what is stored for one org or one principal. 0 means no limit.
type Quotas struct {
	MaxAgents         int   `default:"1000" env:"PARLEY_MAX_AGENTS" placeholder:"N" group:"quotas"`
	MaxPublicAgents   int   `default:"100" env:"PARLEY_MAX_PUBLIC_AGENTS" placeholder:"N" group:"quotas"`
	MaxKeys           int   `default:"10000" env:"PARLEY_MAX_KEYS" placeholder:"N" group:"quotas"`
	MaxPrincipalKeys  int   `default:"100" env:"PARLEY_MAX_PRINCIPAL_KEYS" placeholder:"N" group:"quotas"`
	MaxClients        int   `default:"1000" env:"PARLEY_MAX_CLIENTS" placeholder:"N" group:"quotas"`
	MaxInvitations    int   `default:"1000" env:"PARLEY_MAX_INVITATIONS" placeholder:"N" group:"quotas"`
	MaxLiveTasks      int64 `default:"100000" env:"PARLEY_MAX_LIVE_TASKS" placeholder:"N" group:"quotas"`
	MaxStoredTasks    int64 `default:"5000000" env:"PARLEY_MAX_STORED_TASKS" placeholder:"N" group:"quotas"`
	MaxPushConfigs    int64 `default:"10000" env:"PARLEY_MAX_PUSH_CONFIGS" placeholder:"N" group:"quotas"`
	MaxOrgPushConfigs int64 `default:"100000" env:"PARLEY_MAX_ORG_PUSH_CONFIGS" placeholder:"N" group:"quotas"`
	MaxWorkers        int   `default:"1000" env:"PARLEY_MAX_WORKERS" placeholder:"N" group:"quotas"`
	MaxCallDepth      int   `default:"8" env:"PARLEY_MAX_CALL_DEPTH" placeholder:"N" group:"quotas"`
	MaxWebhooks       int   `default:"100" env:"PARLEY_MAX_WEBHOOKS" placeholder:"N" group:"quotas"`
	MaxCardAgents     int   `default:"1000" env:"PARLEY_MAX_CARD_AGENTS" placeholder:"N" group:"quotas"`
}

// DefaultQuotas repeats the defaults of the tags.
func DefaultQuotas() Quotas {
	return Quotas{
		MaxAgents: 1000, MaxPublicAgents: 100, MaxKeys: 10_000, MaxPrincipalKeys: 100, MaxClients: 1000, MaxInvitations: 1000,
		MaxLiveTasks: 100_000, MaxStoredTasks: 5_000_000, MaxPushConfigs: 10_000, MaxOrgPushConfigs: 100_000,
		MaxWorkers: 1000, MaxCallDepth: 8, MaxWebhooks: 100, MaxCardAgents: 1000,
	}
}

// Validate rejects negative quotas.
func (q *Quotas) Validate() error {
	for _, c := range []struct {
		flag string
		n    int64
	}{
		{"max-agents", int64(q.MaxAgents)},
		{"max-public-agents", int64(q.MaxPublicAgents)},
		{"max-keys", int64(q.MaxKeys)},
		{"max-principal-keys", int64(q.MaxPrincipalKeys)},
		{"max-clients", int64(q.MaxClients)},
		{"max-invitations", int64(q.MaxInvitations)},
		{"max-live-tasks", q.MaxLiveTasks},
		{"max-stored-tasks", q.MaxStoredTasks},
		{"max-push-configs", q.MaxPushConfigs},
		{"max-org-push-configs", q.MaxOrgPushConfigs},
		{"max-workers", int64(q.MaxWorkers)},
		{"max-webhooks", int64(q.MaxWebhooks)},
	} {
		if c.n < 0 {
			return fmt.Errorf("--%s must be 0 (no limit) or more; it is %d", c.flag, c.n)
		}
	}
	if q.MaxCallDepth < 1 || q.MaxCallDepth > chain.MaxDepth {
		return fmt.Errorf("--max-call-depth must be from 1 to %d; it is %d", chain.MaxDepth, q.MaxCallDepth)
	}
	if q.MaxCardAgents < 1 || q.MaxCardAgents > 1000 {
		return fmt.Errorf("--max-card-agents must be from 1 to 1000; it is %d", q.MaxCardAgents)
	}
	return nil
}
