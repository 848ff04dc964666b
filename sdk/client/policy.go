package client

import (
	"encoding/json"
	"fmt"
	"time"
)

// TaskPolicy says how long a task may take and how often it is tried. The policy of an agent is for
// tasks whose sender gives none.
type TaskPolicy struct {
	// Deadline is when the task fails unless it is over; not for agents.
	Deadline time.Time
	// Timeout is the time from the creation of the task to its deadline, in whole seconds up to 30
	// days. Give it or a Deadline.
	Timeout time.Duration
	// Retry is nil for the default: up to 3 attempts if workers are lost.
	Retry *RetryPolicy
}

// RetryPolicy says which attempts are followed by another one.
type RetryPolicy struct {
	MaxAttempts int           // up to 10, with the first; 3 if zero
	Backoff     time.Duration // before the second attempt, up to an hour; doubles with each further one
	On          []RetryCause  // both if empty
}

// RetryCause is a reason to try a task again.
type RetryCause string

// The reasons to try a task again.
const (
	RetryLost   RetryCause = "lost"   // the worker was lost
	RetryFailed RetryCause = "failed" // the worker reported a failure
)

// policyKey is the member of a request's metadata that has the policy of a new task.
const policyKey = "parley.dev/policy"

// Metadata returns the metadata of a request, which may be nil, with the policy. [SendParams] needs
// it not: it has a field for the policy.
func (p TaskPolicy) Metadata(metadata json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &all); err != nil {
			return nil, fmt.Errorf("the metadata is not a JSON object: %w", err)
		}
	}
	if all == nil { // null
		all = map[string]json.RawMessage{}
	}
	policy, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	all[policyKey] = policy
	return json.Marshal(all)
}

// wirePolicy and wireRetry are a policy in JSON.
type (
	wirePolicy struct {
		Deadline *time.Time `json:"deadline,omitempty"`
		Timeout  int64      `json:"timeout_seconds,omitempty"`
		Retry    *wireRetry `json:"retry,omitempty"`
	}
	wireRetry struct {
		MaxAttempts int          `json:"max_attempts,omitempty"`
		Backoff     int64        `json:"backoff_seconds,omitempty"`
		On          []RetryCause `json:"on,omitempty"`
	}
)

// MarshalJSON implements json.Marshaler: the empty policy of a patch is null, which removes the
// policy. Fractions of seconds are rounded up.
func (p TaskPolicy) MarshalJSON() ([]byte, error) {
	if p.Deadline.IsZero() && p.Timeout == 0 && p.Retry == nil {
		return []byte("null"), nil
	}
	out := wirePolicy{Timeout: ceilSeconds(p.Timeout)}
	if !p.Deadline.IsZero() {
		at := p.Deadline.UTC()
		out.Deadline = &at
	}
	if r := p.Retry; r != nil {
		out.Retry = &wireRetry{r.MaxAttempts, ceilSeconds(r.Backoff), r.On}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *TaskPolicy) UnmarshalJSON(data []byte) error {
	var in wirePolicy
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*p = TaskPolicy{Timeout: time.Duration(in.Timeout) * time.Second}
	if in.Deadline != nil {
		p.Deadline = *in.Deadline
	}
	if r := in.Retry; r != nil {
		p.Retry = &RetryPolicy{r.MaxAttempts, time.Duration(r.Backoff) * time.Second, r.On}
	}
	return nil
}

func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
