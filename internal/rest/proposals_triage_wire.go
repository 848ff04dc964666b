package rest

import (
	"math"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/proposal"
)

// ProposalCounts is the number of proposals per status.
type ProposalCounts struct {
	Counts StatusCounts `json:"counts" doc:"Number per status."`
	Total  int64        `json:"total" doc:"Number of all matches." example:"42"`
}

// StatusCounts has a number for each status.
type StatusCounts struct {
	Draft    int64 `json:"draft" doc:"Drafts that the caller may see." example:"1"`
	Open     int64 `json:"open" doc:"Open proposals, to be decided." example:"30"`
	Approved int64 `json:"approved" doc:"Approved proposals, whose follow-up is to be done." example:"5"`
	Rejected int64 `json:"rejected" doc:"Rejected proposals." example:"4"`
	Resolved int64 `json:"resolved" doc:"Resolved proposals." example:"2"`
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
	Groups []ProposalGroup `json:"groups" nullable:"false" doc:"Groups, largest first."`
}

// ProposalGroup summarizes proposals with the same submitter or fingerprint.
type ProposalGroup struct {
	Key           string `json:"key" doc:"The submitter or the fingerprint." example:"agent:scout"`
	Count         int64  `json:"count" doc:"Number of proposals." example:"12"`
	EvidenceCount int64  `json:"evidence_count" doc:"For a fingerprint: number of reports." example:"0"`
	OldestAt      string `json:"oldest_at" format:"date-time" doc:"When the first was submitted." example:"2026-03-01T09:30:00.000000Z"`
	NewestAt      string `json:"newest_at" format:"date-time" doc:"When the last was submitted."`
}

func groupOf(g *proposal.Group) ProposalGroup {
	return ProposalGroup{
		Key: g.Key, Count: g.Count, EvidenceCount: g.Evidence, OldestAt: stamp(g.Oldest), NewestAt: stamp(g.Newest),
	}
}

// SimilarProposals lists likely duplicates.
type SimilarProposals struct {
	Similar []SimilarProposal `json:"similar" nullable:"false" doc:"Proposals, most similar first."`
}

// SimilarProposal is a likely duplicate.
type SimilarProposal struct {
	ID          string `json:"id" doc:"Proposal id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Title       string `json:"title" doc:"Title." example:"Retry webhook deliveries"`
	Status      string `json:"status" doc:"Current status." example:"open"`
	SubmittedBy string `json:"submitted_by" doc:"Who submitted it." example:"agent:scout"`
	SubmittedAt string `json:"submitted_at" format:"date-time" doc:"When it was submitted."`
	Excerpt     string `json:"excerpt" doc:"Beginning of the problem, on one line." example:"A delivery that fails once is lost."`
	Words       int    `json:"words" doc:"Number of matching words." example:"4"`
}

// TransformSchema adds the enumeration of the domain.
func (SimilarProposal) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(proposal.Statuses))
	return s
}

func similarOf(found []proposal.Likely) *similarOutput {
	out := &similarOutput{Body: SimilarProposals{Similar: make([]SimilarProposal, len(found))}}
	for i := range found {
		l := &found[i]
		out.Body.Similar[i] = SimilarProposal{
			ID: l.ID, Title: l.Title, Status: string(l.Status),
			SubmittedBy: l.SubmittedBy, SubmittedAt: stamp(l.SubmittedAt), Excerpt: l.Excerpt, Words: l.Words,
		}
	}
	return out
}

// ProposalDecisions is one decision on several proposals.
type ProposalDecisions struct {
	Status         string         `json:"status" doc:"New status of all proposals." example:"approved"`
	ResolutionNote *string        `json:"resolution_note,omitempty" doc:"Reason; required to reject." example:"Planned for the next release."`
	Items          []DecisionItem `json:"items" nullable:"false" doc:"Proposals, each once."`
}

// TransformSchema adds the enumeration and limits of the domain.
func (ProposalDecisions) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(proposal.Statuses))
	property(s, "resolution_note", length(0, proposal.MaxNote), matching(prosePattern()))
	low, high := 1, proposal.MaxBulk
	s.Properties["items"].MinItems, s.Properties["items"].MaxItems = &low, &high
	s.AllOf = []*huma.Schema{{Extensions: map[string]any{"if": rejection(), "then": reason()}}}
	return s
}

// DecisionItem is one of the proposals to decide.
type DecisionItem struct {
	ID          string `json:"id" pattern:"^prop-[0-9a-z]{26}$" doc:"Proposal id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	TextVersion int64  `json:"text_version" doc:"The text_version you read; fails if the text has changed since." example:"1"`
}

// TransformSchema adds the limits.
func (DecisionItem) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "text_version", between(1, math.MaxInt32))
	return s
}

// DecisionResults has the result of each decision.
type DecisionResults struct {
	Results []DecisionResult `json:"results" nullable:"false" doc:"One result per item, in the same order."`
	Done    int              `json:"done" doc:"Number of decided proposals." example:"11"`
	Failed  int              `json:"failed" doc:"Number of failed decisions." example:"1"`
}

// DecisionResult is the result of one decision.
type DecisionResult struct {
	ID         string         `json:"id" doc:"Proposal id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Status     *string        `json:"status" doc:"New status; null if the decision failed." example:"approved"`
	FollowupID *string        `json:"followup_id" doc:"Follow-up created by approval; null otherwise." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Replayed   bool           `json:"replayed" doc:"Already decided with the same Idempotency-Key." example:"false"`
	Error      *DecisionError `json:"error,omitempty" doc:"Why the decision failed; omitted on success."`
}

// TransformSchema adds the enumeration of the domain.
func (DecisionResult) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(proposal.Statuses))
	return s
}

// DecisionError is the error that a request for this proposal alone would return.
type DecisionError struct {
	Status int    `json:"status" doc:"HTTP status." example:"412"`
	Code   string `json:"code" doc:"Stable error code." example:"proposal.text_changed"`
	Detail string `json:"detail" doc:"Error message." example:"the text changed while you read it"`
}
