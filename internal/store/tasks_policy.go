package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/policy"
)

// policyRow is the stored form of a policy.
type policyRow struct {
	Deadline int64     `json:"deadline,omitempty"` // microseconds
	Timeout  int64     `json:"timeout,omitempty"`  // microseconds
	Retry    *retryRow `json:"retry,omitempty"`
}

type retryRow struct {
	Attempts int   `json:"attempts"`
	Backoff  int64 `json:"backoff,omitempty"` // microseconds
	Lost     bool  `json:"lost,omitempty"`
	Failed   bool  `json:"failed,omitempty"`
}

// encodePolicy encodes a policy for its column. The zero policy is the empty string.
func encodePolicy(p policy.Policy) (string, error) {
	if p.IsZero() {
		return "", nil
	}
	row := policyRow{Deadline: micros(p.Deadline), Timeout: p.Timeout.Microseconds()}
	if r := p.Retry; r != (policy.Retry{}) {
		row.Retry = &retryRow{r.Attempts, r.Backoff.Microseconds(), r.Lost, r.Failed}
	}
	text, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("encode a policy: %w", err)
	}
	return string(text), nil
}

// decodePolicy is the inverse of encodePolicy.
func decodePolicy(text string) (policy.Policy, error) {
	var row policyRow
	if text == "" {
		return policy.Policy{}, nil
	}
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return policy.Policy{}, fmt.Errorf("decode a policy: %w", err)
	}
	p := policy.Policy{Deadline: fromMicros(row.Deadline), Timeout: time.Duration(row.Timeout) * time.Microsecond}
	if r := row.Retry; r != nil {
		p.Retry = policy.Retry{
			Attempts: r.Attempts, Backoff: time.Duration(r.Backoff) * time.Microsecond, Lost: r.Lost, Failed: r.Failed,
		}
	}
	return p, nil
}
