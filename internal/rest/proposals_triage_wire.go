package rest

import (
	"math"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/proposal"
)

// ProposalCounts is how many proposals there are of each status.
type ProposalCounts struct {
	Counts StatusCounts `json:"counts" doc:"By status."`
	Total  int64        `json:"total" doc:"Of every status." example:"42"`
}

// StatusCounts has a number for each status.
type StatusCounts struct {
	Draft    int64 `json:"draft" doc:"Drafts that the caller may see." example:"1"`
	Open     int64 `json:"open" doc:"Those to be decided." example:"30"`
	Approved int64 `json:"approved" doc:"Those whose follow-up is to be done." example:"5"`
	Rejected int64 `json:"rejected" doc:"Those that were rejected." example:"4"`
	Resolved int64 `json:"resolved" doc:"Those that are done." example:"2"`
}

func countsOf(n map[proposal.Status]int64) ProposalCounts {
	out := ProposalCounts{Counts: StatusCounts{
		Draft: n[proposal.Draft], Open: n[proposal.Open], Approved: n[proposal.Approved],
		Rejected: n[proposal.Rejected], Resolved: n[proposal.Resolved],
	}}
	for _, count := range n {
		out.Total += count
	}
	return out
}

// ProposalGroups lists groups of proposals.
type ProposalGroups struct {
	Groups []ProposalGroup `json:"groups" nullable:"false" doc:"The largest groups first."`
}

// ProposalGroup is what is known of proposals that have something in common.
type ProposalGroup struct {
	Key           string `json:"key" doc:"The submitter or the fingerprint." example:"agent:scout"`
	Count         int64  `json:"count" doc:"How many proposals." example:"12"`
	EvidenceCount int64  `json:"evidence_count" doc:"Of a fingerprint: how often it was reported." example:"0"`
	OldestAt      string `json:"oldest_at" format:"date-time" doc:"When the first was submitted." example:"2026-03-01T09:30:00.000000Z"`
	NewestAt      string `json:"newest_at" format:"date-time" doc:"When the last was submitted." example:"2026-03-02T10:00:00.000000Z"`
}

func groupOf(g *proposal.Group) ProposalGroup {
	return ProposalGroup{Key: g.Key, Count: g.Count, EvidenceCount: g.Evidence, OldestAt: stamp(g.Oldest), NewestAt: stamp(g.Newest)}
}

// SimilarProposals lists likely duplicates.
type SimilarProposals struct {
	Similar []SimilarProposal `json:"similar" nullable:"false" doc:"The most similar first."`
}

// SimilarProposal may be a duplicate.
type SimilarProposal struct {
	ID          string `json:"id" doc:"The proposal's id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Title       string `json:"title" doc:"Its title." example:"Retry webhook deliveries"`
	Status      string `json:"status" doc:"Where it stands." example:"open"`
	SubmittedBy string `json:"submitted_by" doc:"Who submitted it." example:"agent:scout"`
	SubmittedAt string `json:"submitted_at" format:"date-time" doc:"When it was submitted." example:"2026-03-01T09:30:00.000000Z"`
	Excerpt     string `json:"excerpt" doc:"The beginning of its problem on one line." example:"A delivery that fails once is lost."`
	Words       int    `json:"words" doc:"How many of the words that were looked for it has." example:"4"`
}

// TransformSchema takes the list from the domain.
func (SimilarProposal) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(proposal.Statuses))
	return s
}

func similarOf(found []proposal.Likely) *similarOutput {
	out := &similarOutput{Body: SimilarProposals{Similar: make([]SimilarProposal, len(found))}}
	for i := range found {
		l := &found[i]
		out.Body.Similar[i] = SimilarProposal{
			ID: l.ID, Title: l.Title, Status: string(l.Status), SubmittedBy: l.SubmittedBy, SubmittedAt: stamp(l.SubmittedAt),
			Excerpt: l.Excerpt, Words: l.Words,
		}
	}
	return out
}

// ProposalDecisions is one decision on several proposals.
type ProposalDecisions struct {
	Status         string         `json:"status" doc:"The status that all of them go to." example:"approved"`
	ResolutionNote *string        `json:"resolution_note,omitempty" doc:"The reason; required to reject." example:"We do this in the next release."`
	Items          []DecisionItem `json:"items" nullable:"false" doc:"The proposals, each once."`
}

// TransformSchema takes lists and limits from the domain.
func (ProposalDecisions) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(proposal.Statuses))
	property(s, "resolution_note", length(0, proposal.MaxNote), matching(prosePattern()))
	low, high := 1, proposal.MaxBulk
	s.Properties["items"].MinItems, s.Properties["items"].MaxItems = &low, &high
	s.AllOf = []*huma.Schema{{Extensions: map[string]any{"if": rejection(), "then": reason()}}}
	return s
}

// DecisionItem is one of the proposals.
type DecisionItem struct {
	ID          string `json:"id" pattern:"^prop-[0-9a-z]{26}$" doc:"The proposal's id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	TextVersion int64  `json:"text_version" doc:"The text_version that you decided on; the decision is refused if the text has changed since." example:"1"`
}

// TransformSchema adds the limits.
func (DecisionItem) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "text_version", between(1, math.MaxInt32))
	return s
}

// DecisionResults says what became of each proposal.
type DecisionResults struct {
	Results []DecisionResult `json:"results" nullable:"false" doc:"One for each item, in the same order."`
	Done    int              `json:"done" doc:"How many were decided." example:"11"`
	Failed  int              `json:"failed" doc:"How many were not." example:"1"`
}

// DecisionResult says what became of one.
type DecisionResult struct {
	ID         string         `json:"id" doc:"The proposal's id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Status     *string        `json:"status" doc:"Its status now; null if it was not decided." example:"approved"`
	FollowupID *string        `json:"followup_id" doc:"The follow-up that approval created; null otherwise." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Replayed   bool           `json:"replayed" doc:"It had been decided before under the same Idempotency-Key." example:"false"`
	Error      *DecisionError `json:"error,omitempty" doc:"Why it was not decided; left out if it was."`
}

// TransformSchema takes the list from the domain.
func (DecisionResult) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(proposal.Statuses))
	return s
}

// DecisionError is what the answer would have been, had it been decided alone.
type DecisionError struct {
	Status int    `json:"status" doc:"The HTTP status." example:"412"`
	Code   string `json:"code" doc:"What is wrong, for programs." example:"proposal.text_changed"`
	Detail string `json:"detail" doc:"What is wrong, for people." example:"the text changed while you read it"`
}
