package client

import (
	"context"
	"net/http"
	"time"
)

// ExchangeRequest reports on several tasks and asks for the next ones.
type ExchangeRequest struct {
	Reports []LeaseReport `json:"reports,omitempty"` // at most 100
	Claim   *ClaimRequest `json:"claim,omitempty"`   // nil: claim nothing. It waits only without reports
}

// LeaseReport is one report of an exchange.
type LeaseReport struct {
	Lease  string     `json:"lease"`
	Report WorkReport `json:"report"`
	Trace             // that the report belongs to
}

// Exchange is the response to an exchange.
type Exchange struct {
	Reports      []ReportResult  `json:"reports"` // one for each report, in the same order
	Tasks        []ClaimedTask   `json:"tasks"`
	Messages     []DirectMessage `json:"messages"`
	ClaimProblem *Error          `json:"claim_problem"` // why nothing was claimed; nil: no problem
}

// ReportResult is the result of one report of an exchange.
type ReportResult struct {
	Lease    string        `json:"lease"`
	Progress *WorkProgress `json:"progress"`
	Problem  *Error        `json:"problem"` // nil: the report was carried out
}

// Exchange reports on several tasks and takes further ones from the agent's queue. Each report has
// its own result. After a lost response the same reports can be sent again.
func (w *WorkerClient) Exchange(ctx context.Context, r ExchangeRequest, opts ...Option) (*Exchange, error) {
	c := call{method: http.MethodPost, path: w.path("work"), in: r}
	if r.Claim != nil && len(r.Reports) == 0 {
		c.waits = time.Duration(r.Claim.WaitSeconds) * time.Second
	}
	return fetch[Exchange](ctx, w.c, c, opts)
}
