package rest

import (
	"math"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/proposal"
)

// Proposal is the full record of a proposal.
type Proposal struct {
	ID                 string   `json:"id" doc:"Assigned by the service." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Title              string   `json:"title" doc:"One line that names the improvement." example:"Retry webhook deliveries"`
	Category           string   `json:"category" doc:"Category." example:"reliability"`
	Problem            string   `json:"problem" doc:"What is wrong today." example:"A delivery that fails once is lost."`
	SuggestedFix       string   `json:"suggested_fix" doc:"How to fix it." example:"Retry with exponential backoff for a day."`
	Priority           string   `json:"priority" doc:"Priority for the review." example:"high"`
	Status             string   `json:"status" doc:"Current status." example:"open"`
	SubmittedBy        string   `json:"submitted_by" doc:"Who submitted it." example:"agent:scout"`
	SubmittedAt        string   `json:"submitted_at" format:"date-time" doc:"When it was submitted."`
	UpdatedAt          string   `json:"updated_at" format:"date-time" doc:"When it last changed, votes included."`
	VotesFor           int      `json:"votes_for" doc:"Number of votes for it." example:"3"`
	VotesAgainst       int      `json:"votes_against" doc:"Number of votes against it." example:"1"`
	VotesBy            VotesBy  `json:"votes_by" doc:"The same votes, of people and agents separately."`
	ResolutionNote     string   `json:"resolution_note" doc:"Reason of the last decision; empty before." example:""`
	DuplicateOf        *string  `json:"duplicate_of" doc:"Proposal of which it was rejected as a duplicate; null otherwise."`
	MyVote             *string  `json:"my_vote" doc:"The caller's own vote; null without one." example:"for"`
	AllowedTransitions []string `json:"allowed_transitions" nullable:"false" doc:"Statuses that it can change to."`
	FollowupID         *string  `json:"followup_id" doc:"Follow-up created by approval; null before." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	FollowupStatus     *string  `json:"followup_status" doc:"Status of the follow-up; null before approval." example:"done"`
	Resolvable         bool     `json:"resolvable" doc:"Whether it is approved and its follow-up is done." example:"true"`
	Fingerprint        *string  `json:"fingerprint" doc:"Friction that filed it; null if it was submitted." example:"registry:timeout"`
	EvidenceCount      int64    `json:"evidence_count" doc:"Number of reports of that friction." example:"7"`
	TextVersion        int64    `json:"text_version" doc:"Version of title, problem and suggested_fix; send it with a decision." example:"1"`
}

// VotesBy counts votes by the kind of the voter.
type VotesBy struct {
	People Tally `json:"people" doc:"Votes of users."`
	Agents Tally `json:"agents" doc:"Votes of agents."`
}

// Tally counts votes.
type Tally struct {
	For     int `json:"for" doc:"Number of votes for it." example:"2"`
	Against int `json:"against" doc:"Number of votes against it." example:"1"`
}

// TransformSchema adds the enumerations of the domain, and examples.
func (Proposal) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "category", oneOf(proposal.Categories))
	property(s, "priority", oneOf(proposal.Priorities))
	property(s, "status", oneOf(proposal.Statuses))
	property(s, "my_vote", oneOf(proposal.Choices))
	property(s, "duplicate_of", exampleOf(exampleProposalID))
	property(s, "allowed_transitions", exampleOf([]string{"approved", "rejected"}))
	oneOf(proposal.Statuses)(s.Properties["allowed_transitions"].Items)
	return s
}

// ProposalItem is a proposal in a list.
type ProposalItem struct {
	ID           string  `json:"id" doc:"Assigned by the service." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Title        string  `json:"title" doc:"One line that names the improvement." example:"Retry webhook deliveries"`
	Category     string  `json:"category" doc:"Category." example:"reliability"`
	Status       string  `json:"status" doc:"Current status." example:"open"`
	Priority     string  `json:"priority" doc:"Priority for the review." example:"high"`
	SubmittedBy  string  `json:"submitted_by" doc:"Who submitted it." example:"agent:scout"`
	SubmittedAt  string  `json:"submitted_at" format:"date-time" doc:"When it was submitted."`
	VotesFor     int     `json:"votes_for" doc:"Number of votes for it." example:"3"`
	VotesAgainst int     `json:"votes_against" doc:"Number of votes against it." example:"1"`
	MyVote       *string `json:"my_vote" doc:"The caller's own vote; null without one." example:"for"`

	Fingerprint   *string `json:"fingerprint" doc:"Friction that filed it; null if it was submitted." example:"registry:timeout"`
	EvidenceCount int64   `json:"evidence_count" doc:"Number of reports of that friction." example:"7"`
	TextVersion   int64   `json:"text_version" doc:"Version of title, problem and suggested_fix." example:"1"`
	Excerpt       *string `json:"excerpt,omitempty" doc:"Beginning of the problem, on one line; only with include=excerpt."`
}

// TransformSchema adds the enumerations of the domain, and an example.
func (ProposalItem) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "category", oneOf(proposal.Categories))
	property(s, "status", oneOf(proposal.Statuses))
	property(s, "priority", oneOf(proposal.Priorities))
	property(s, "my_vote", oneOf(proposal.Choices))
	property(s, "excerpt", exampleOf("A delivery that fails once is lost."))
	return s
}

// ProposalList is a page of proposals.
type ProposalList struct {
	Proposals  []ProposalItem `json:"proposals" nullable:"false" doc:"Proposals; empty past the end."`
	Total      int64          `json:"total" doc:"Number of matches; with q at most 10,000, see total_exact." example:"42"`
	Page       int            `json:"page" doc:"Page number." example:"1"`
	NextCursor *string        `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`

	TotalExact    *bool `json:"total_exact,omitempty" doc:"Only with q: false if there are more matches than total."`
	IndexComplete *bool `json:"index_complete,omitempty" doc:"Only with q: false while the text index lacks proposals, for a while after an upgrade."`
}

// ProposalSubmission is the body of a submission.
type ProposalSubmission struct {
	Title        string  `json:"title" doc:"One line that names the improvement." example:"Retry webhook deliveries"`
	Category     string  `json:"category" doc:"Category." example:"reliability"`
	Problem      string  `json:"problem" doc:"What is wrong today." example:"A delivery that fails once is lost."`
	SuggestedFix string  `json:"suggested_fix" doc:"How to fix it." example:"Retry with exponential backoff for a day."`
	Priority     *string `json:"priority,omitempty" doc:"Priority for the review; default normal." example:"high"`
	Status       *string `json:"status,omitempty" doc:"Default open. Only its submitter and admins see a draft." example:"open"`
}

// TransformSchema adds the enumerations and limits of the domain.
func (ProposalSubmission) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	editableSchema(s)
	property(s, "status", oneOf([]proposal.Status{proposal.Open, proposal.Draft}))
	return s
}

func editableSchema(s *huma.Schema) {
	property(s, "title", length(1, proposal.MaxTitle), matching(titlePattern()))
	property(s, "category", oneOf(proposal.Categories))
	property(s, "problem", length(1, proposal.MaxText), matching(requiredPattern()))
	property(s, "suggested_fix", length(1, proposal.MaxText), matching(requiredPattern()))
	property(s, "priority", oneOf(proposal.Priorities))
}

// ProposalPatch is the body of a change: either a decision (status) or an edit (the other fields).
type ProposalPatch struct {
	Status         *string `json:"status,omitempty" example:"approved"`
	ResolutionNote *string `json:"resolution_note,omitempty" example:"Planned for the next release."`
	DuplicateOf    *string `json:"duplicate_of,omitempty" doc:"With the status rejected: id of the duplicated proposal."`
	TextVersion    *int64  `json:"text_version,omitempty" example:"1"`
	Title          *string `json:"title,omitempty" doc:"A new title."`
	Category       *string `json:"category,omitempty" doc:"A new category."`
	Problem        *string `json:"problem,omitempty" doc:"A new problem."`
	SuggestedFix   *string `json:"suggested_fix,omitempty" doc:"A new suggested fix."`
	Priority       *string `json:"priority,omitempty" doc:"A new priority."`
}

// TransformSchema adds the enumerations and limits of the domain, and descriptions.
func (ProposalPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	editableSchema(s)
	property(s, "status", oneOf(proposal.Statuses),
		describedAs("A new status; requires svc:admin:admin. Cannot be combined with edited fields."))
	property(s, "resolution_note", length(0, proposal.MaxNote), matching(prosePattern()),
		describedAs("Reason of the decision; required to reject, unless duplicate_of is set."))
	one := 1
	s.MinProperties = &one
	// A request either decides or edits. A note requires a decision.
	property(s, "text_version", between(1, math.MaxInt32),
		describedAs("The text_version that you read; 412 if the text has changed since. Votes do not change it."))
	edits := []string{"title", "category", "problem", "suggested_fix", "priority"}
	edit := anyField(edits...)
	edit.Not = anyField("resolution_note", "duplicate_of")
	ifThen(s, []string{"status"}, noneOf(edits...), edit)
	property(s, "duplicate_of", matching(proposalIDPattern))
	// A duplicate replaces the reason, and requires a rejection.
	s.AllOf = []*huma.Schema{{Extensions: map[string]any{
		"if":   rejection(),
		"then": &huma.Schema{AnyOf: []*huma.Schema{reason(), withFields("duplicate_of")}},
		"else": noneOf("duplicate_of"),
	}}}
	return s
}

// rejection returns the schema of a rejection.
func rejection() *huma.Schema {
	rejected := &huma.Schema{Enum: []any{string(proposal.Rejected)}}
	return &huma.Schema{Required: []string{"status"}, Properties: map[string]*huma.Schema{"status": rejected}}
}

// reason returns the schema of a decision with a note.
func reason() *huma.Schema {
	note := stringSchema(matching(requiredPattern()))
	return &huma.Schema{
		Required: []string{"resolution_note"}, Properties: map[string]*huma.Schema{"resolution_note": note},
	}
}

// shownProposal is a Proposal with the caller's vote, which is encoded without reflection.
type shownProposal struct {
	record *proposal.Proposal
	vote   *proposal.Vote // nil: none
}

func (shownProposal) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[Proposal](), true, "")
}

// AppendJSON implements httpx.Appender.
func (s shownProposal) AppendJSON(b []byte) []byte {
	b = slices.Grow(b, sizeOf(s.record))
	b = appendDecision(b, s.record)
	choice := proposal.Choice("")
	if s.vote != nil {
		choice = s.vote.Choice
	}
	b = appendOrNull(b, `,"my_vote":`, string(choice))
	return appendProgress(b, s.record)
}
