package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/policy"
	"github.com/parley-dev/parley/internal/wire"
)

// AgentPolicy is the policy of tasks whose sender gives none.
type AgentPolicy struct {
	TimeoutSeconds int          `json:"timeout_seconds,omitempty" doc:"Time from the creation of a task to its deadline; absent: no deadline." example:"3600"`
	Retry          *RetryPolicy `json:"retry,omitempty" doc:"When a task is tried again; absent: up to 3 attempts if workers are lost."`
}

// RetryPolicy says which attempts are followed by another one.
type RetryPolicy struct {
	MaxAttempts    int      `json:"max_attempts,omitempty" doc:"Attempts at most, with the first; default 3." example:"3"`
	BackoffSeconds int      `json:"backoff_seconds,omitempty" doc:"Wait before the second attempt; doubles with each further one, up to an hour; default 0." example:"5"`
	On             []string `json:"on,omitempty" nullable:"false" doc:"After which ends of an attempt; default: both." example:"[\"lost\",\"failed\"]"`
}

// TransformSchema adds the limits of the domain.
func (AgentPolicy) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "timeout_seconds", between(1, int(policy.MaxTimeout/time.Second)))
	return s
}

// TransformSchema adds the limits of the domain.
func (RetryPolicy) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "max_attempts", between(1, policy.MaxAttempts))
	property(s, "backoff_seconds", between(0, int(policy.MaxBackoff/time.Second)))
	property(s, "on", items(1, 2), eachItem(oneOf([]string{retryLost, retryFailed})))
	return s
}

const (
	retryLost   = "lost"
	retryFailed = "failed"
)

// policyOf returns nil for the zero policy.
func policyOf(p policy.Policy) *AgentPolicy {
	if p.IsZero() {
		return nil
	}
	out := &AgentPolicy{TimeoutSeconds: int(p.Timeout / time.Second)}
	if r := p.Retry; r != (policy.Retry{}) {
		out.Retry = &RetryPolicy{MaxAttempts: r.Attempts, BackoffSeconds: int(r.Backoff / time.Second)}
		if r.Lost {
			out.Retry.On = append(out.Retry.On, retryLost)
		}
		if r.Failed {
			out.Retry.On = append(out.Retry.On, retryFailed)
		}
	}
	return out
}

// policyInput is a policy in a request; null removes it.
type policyInput struct {
	set    bool
	value  policy.Policy
	broken []errs.Field // relative to the body
}

// AcceptsNull implements httpx.Nullable.
func (*policyInput) AcceptsNull() string { return "an object or null" }

// UnmarshalJSON implements json.Unmarshaler.
func (p *policyInput) UnmarshalJSON(data []byte) error {
	p.set = true
	if data[0] == 'n' {
		return nil
	}
	fields := wire.Read(data, true, func(r *wire.Reader) { r.Policy(&p.value) })
	if len(fields) == 0 && !p.value.Deadline.IsZero() {
		fields = append(fields, errs.NewField("deadline", "is for a single task; give timeout_seconds"))
	}
	p.broken = errs.Under(fields, "policy")
	return nil
}

// Schema documents the policy.
func (policyInput) Schema(r huma.Registry) *huma.Schema {
	s := inRequest[AgentPolicy](r)
	retry := inRequest[RetryPolicy](r)
	s.Properties = map[string]*huma.Schema{"timeout_seconds": s.Properties["timeout_seconds"], "retry": retry}
	s.Nullable = true
	return s
}

// The commands on agents as their idempotency keys see them: a policy has no JSON encoding.
type (
	createdAgent struct {
		agent.Agent
		Policy *AgentPolicy
		Remote string // URL of a relay; not its credential
	}
	editedAgent struct {
		agent.Edit
		Policy *AgentPolicy
		Drops  bool   // the policy
		Remote string // URL of a relay
		Secret bool   // its credential is set
	}
)
