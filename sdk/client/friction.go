package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// FrictionService reports and reads friction: what gets in the way of work.
type FrictionService struct{ service }

// FrictionReport is one occurrence of a friction.
type FrictionReport struct {
	Fingerprint  string   `json:"fingerprint"` // identifies the friction, such as "registry:timeout"
	Title        string   `json:"title"`       // of the proposal that enough reports file
	Category     Category `json:"category"`
	Problem      string   `json:"problem"`
	SuggestedFix string   `json:"suggested_fix,omitempty"`
	Evidence     string   `json:"evidence,omitempty"`   // what was seen this time, up to 4 KiB
	Occurrence   string   `json:"occurrence,omitempty"` // identifies this time, which then counts once
	Priority     Priority `json:"priority,omitempty"`   // normal if empty
}

// FrictionOutcome is the result of a report.
type FrictionOutcome struct {
	Fingerprint string `json:"fingerprint"`
	Count       int64  `json:"count"`       // reports so far
	Threshold   int64  `json:"threshold"`   // how many reports file a proposal; 0: never
	Counted     bool   `json:"counted"`     // false: this occurrence was reported before
	Filed       bool   `json:"filed"`       // this report filed the proposal
	ProposalID  string `json:"proposal_id"` // empty: none yet
}

// Report reports an occurrence. The report that reaches the org's threshold files a
// proposal with the collected evidence.
func (s *FrictionService) Report(ctx context.Context, f FrictionReport, opts ...Option) (*FrictionOutcome, error) {
	return fetch[FrictionOutcome](ctx, s.c, post(f, "friction"), opts)
}

// Friction summarizes the reports with one fingerprint.
type Friction struct {
	Fingerprint  string    `json:"fingerprint"`
	Title        string    `json:"title"`
	Category     Category  `json:"category"`
	Problem      string    `json:"problem"`
	SuggestedFix string    `json:"suggested_fix"`
	Priority     Priority  `json:"priority"`
	Count        int64     `json:"count"`
	ProposalID   string    `json:"proposal_id"` // empty: none yet
	FirstAt      time.Time `json:"first_at"`
	LastAt       time.Time `json:"last_at"`
	LastBy       string    `json:"last_by"`
	// Evidence is in the record of one friction, not in lists.
	Evidence []FrictionEvidence `json:"evidence"`
}

// FrictionEvidence is the evidence of one report.
type FrictionEvidence struct {
	Seq        int64     `json:"seq"`
	Reporter   string    `json:"reporter"`
	Occurrence string    `json:"occurrence"` // empty: unnamed
	Evidence   string    `json:"evidence"`
	At         time.Time `json:"at"`
}

// CursorParams selects a page of a list with cursors.
type CursorParams struct {
	Cursor string `url:"cursor"`
	Limit  int    `url:"limit"`
}

func (s *FrictionService) list(p CursorParams) listing[Friction] {
	r := read("friction")
	r.query = values(p)
	return listing[Friction]{c: s.c, call: r, member: "friction"}
}

// List returns one page of frictions, the latest first.
func (s *FrictionService) List(ctx context.Context, p CursorParams, opts ...Option) (*Page[Friction], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the frictions of all pages.
func (s *FrictionService) All(ctx context.Context, opts ...Option) iter.Seq2[Friction, error] {
	return s.list(CursorParams{}).all(ctx, opts)
}

// Get returns one friction with its evidence.
func (s *FrictionService) Get(ctx context.Context, fingerprint string, opts ...Option) (*Friction, error) {
	return fetch[Friction](ctx, s.c, read("friction", fingerprint), opts)
}

// FrictionSettings sets how many reports file a proposal.
type FrictionSettings struct {
	Threshold int `json:"threshold"` // 0: never
}

// Settings returns the org's settings.
func (s *FrictionService) Settings(ctx context.Context, opts ...Option) (*FrictionSettings, error) {
	return fetch[FrictionSettings](ctx, s.c, read("settings", "friction"), opts)
}

// SetSettings changes the org's settings.
func (s *FrictionService) SetSettings(
	ctx context.Context, f FrictionSettings, opts ...Option,
) (*FrictionSettings, error) {
	r := call{method: http.MethodPut, path: escape("settings", "friction"), inOrg: true, in: f, repeat: true}
	return fetch[FrictionSettings](ctx, s.c, r, opts)
}
