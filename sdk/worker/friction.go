package worker

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Friction is something that got in the agent's way.
type Friction struct {
	Fingerprint  string `json:"fingerprint"` // what makes reports the same friction, such as "registry:timeout"
	Title        string `json:"title"`       // of the proposal that enough reports file
	Category     string `json:"category"`    // reliability, performance, security, process, feature or documentation
	Problem      string `json:"problem"`
	SuggestedFix string `json:"suggested_fix,omitempty"`
	Evidence     string `json:"evidence,omitempty"`   // what was seen this time, up to 4 KiB
	Occurrence   string `json:"occurrence,omitempty"` // names this time: it counts once, however often it is reported
	Priority     string `json:"priority,omitempty"`   // low, normal (default) or high
}

// FrictionCount is what a report led to.
type FrictionCount struct {
	Count      int    `json:"count"`     // reports so far
	Threshold  int    `json:"threshold"` // how many file a proposal; 0: none do
	Counted    bool   `json:"counted"`   // false: this occurrence had been reported before
	Filed      bool   `json:"filed"`     // this report filed the proposal
	ProposalID string `json:"proposal_id"`
}

const frictionTries = 4

// Friction reports what got in the agent's way, in the agent's own org. Call it each
// time, with the same fingerprint: the report that reaches the org's threshold (three
// unless set) files a proposal with the collected evidence. The key needs the scope
// svc:tasks:write beside its own, and belongs to an agent or a user.
//
// A report with an Occurrence is repeated when the server does not answer; one
// without is sent once.
func (w *Worker) Friction(ctx context.Context, org string, f Friction) (FrictionCount, error) {
	if err := w.check(); err != nil {
		return FrictionCount{}, err
	}
	if org == "" {
		return FrictionCount{}, errors.New("worker: the org is empty; friction is reported in the agent's own")
	}
	var pause backoff
	for try := 1; ; try++ {
		var out FrictionCount
		err := w.request(ctx, http.MethodPost, w.server+"/api/v1/orgs/"+url.PathEscape(org)+"/friction", f, &out)
		if err == nil || f.Occurrence == "" && mayHaveArrived(err) || try == frictionTries {
			return out, err
		}
		wait, again := pause.next(err)
		if !again || !sleep(ctx, wait) {
			return out, err
		}
	}
}

// Friction is Worker.Friction with the task as its occurrence, unless the report has
// one: a second attempt at the same task counts once.
func (t *Task) Friction(ctx context.Context, org string, f Friction) (FrictionCount, error) {
	if f.Occurrence == "" {
		f.Occurrence = t.ID
	}
	return t.hold.Friction(ctx, org, f)
}
