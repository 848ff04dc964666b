package rest

import (
	"math"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/proposal"
)

// Proposal is the whole record.
type Proposal struct {
	ID                 string   `json:"id" doc:"Assigned by the service." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Title              string   `json:"title" doc:"One line that names the improvement." example:"Retry webhook deliveries"`
	Category           string   `json:"category" doc:"What the proposal is about." example:"reliability"`
	Problem            string   `json:"problem" doc:"What is wrong today." example:"A delivery that fails once is lost."`
	SuggestedFix       string   `json:"suggested_fix" doc:"What to do about it." example:"Retry with exponential backoff for a day."`
	Priority           string   `json:"priority" doc:"How soon it should be reviewed; high ones come first." example:"high"`
	Status             string   `json:"status" doc:"Where the proposal stands." example:"open"`
	SubmittedBy        string   `json:"submitted_by" doc:"Who submitted it." example:"agent:scout"`
	SubmittedAt        string   `json:"submitted_at" format:"date-time" doc:"When it was submitted." example:"2026-03-01T09:30:00.000000Z"`
	UpdatedAt          string   `json:"updated_at" format:"date-time" doc:"When it last changed, votes included." example:"2026-03-02T10:00:00.000000Z"`
	VotesFor           int      `json:"votes_for" doc:"How many voted for it." example:"3"`
	VotesAgainst       int      `json:"votes_against" doc:"How many voted against it." example:"1"`
	VotesBy            VotesBy  `json:"votes_by" doc:"The same votes, of people and of agents apart."`
	ResolutionNote     string   `json:"resolution_note" doc:"What the admin said about the last decision; empty until there is one." example:""`
	DuplicateOf        *string  `json:"duplicate_of" doc:"The proposal that it was rejected for as a duplicate; null otherwise." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	MyVote             *string  `json:"my_vote" doc:"The caller's own vote; null without one." example:"for"`
	AllowedTransitions []string `json:"allowed_transitions" nullable:"false" doc:"The statuses that may follow." example:"[\"approved\",\"rejected\"]"`
	FollowupID         *string  `json:"followup_id" doc:"The follow-up that approval created; null before." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	FollowupStatus     *string  `json:"followup_status" doc:"Where that follow-up stands; null before approval." example:"done"`
	Resolvable         bool     `json:"resolvable" doc:"The proposal is approved and its follow-up is done: an admin can resolve it." example:"true"`
	Fingerprint        *string  `json:"fingerprint" doc:"The reported friction that filed it; null if somebody submitted it." example:"registry:timeout"`
	EvidenceCount      int64    `json:"evidence_count" doc:"How often that friction was reported so far." example:"7"`
	TextVersion        int64    `json:"text_version" doc:"The version of title, problem and suggested_fix: send it with a decision on this text." example:"1"`
}

// VotesBy counts votes by who cast them.
type VotesBy struct {
	People Tally `json:"people" doc:"Votes of users."`
	Agents Tally `json:"agents" doc:"Votes of agents."`
}

// Tally counts votes.
type Tally struct {
	For     int `json:"for" doc:"How many are for it." example:"2"`
	Against int `json:"against" doc:"How many are against it." example:"1"`
}

// TransformSchema takes the lists from the domain.
func (Proposal) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "category", oneOf(proposal.Categories))
	property(s, "priority", oneOf(proposal.Priorities))
	property(s, "status", oneOf(proposal.Statuses))
	property(s, "my_vote", oneOf(proposal.Choices))
	oneOf(proposal.Statuses)(s.Properties["allowed_transitions"].Items)
	return s
}

// ProposalItem is one line of the list.
type ProposalItem struct {
	ID           string  `json:"id" doc:"Assigned by the service." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Title        string  `json:"title" doc:"One line that names the improvement." example:"Retry webhook deliveries"`
	Category     string  `json:"category" doc:"What the proposal is about." example:"reliability"`
	Status       string  `json:"status" doc:"Where the proposal stands." example:"open"`
	Priority     string  `json:"priority" doc:"How soon it should be reviewed." example:"high"`
	SubmittedBy  string  `json:"submitted_by" doc:"Who submitted it." example:"agent:scout"`
	SubmittedAt  string  `json:"submitted_at" format:"date-time" doc:"When it was submitted." example:"2026-03-01T09:30:00.000000Z"`
	VotesFor     int     `json:"votes_for" doc:"How many voted for it." example:"3"`
	VotesAgainst int     `json:"votes_against" doc:"How many voted against it." example:"1"`
	MyVote       *string `json:"my_vote" doc:"The caller's own vote; null without one." example:"for"`

	Fingerprint   *string `json:"fingerprint" doc:"The reported friction that filed it; null if somebody submitted it." example:"registry:timeout"`
	EvidenceCount int64   `json:"evidence_count" doc:"How often that friction was reported so far." example:"7"`
	TextVersion   int64   `json:"text_version" doc:"The version of title, problem and suggested_fix." example:"1"`
	Excerpt       *string `json:"excerpt,omitempty" doc:"The beginning of the problem on one line; only with include=excerpt." example:"A delivery that fails once is lost."`
}

// TransformSchema takes the lists from the domain.
func (ProposalItem) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "category", oneOf(proposal.Categories))
	property(s, "status", oneOf(proposal.Statuses))
	property(s, "priority", oneOf(proposal.Priorities))
	property(s, "my_vote", oneOf(proposal.Choices))
	return s
}

// ProposalList is one page of proposals.
type ProposalList struct {
	Proposals  []ProposalItem `json:"proposals" nullable:"false" doc:"The page; empty past the end."`
	Total      int64          `json:"total" doc:"How many match in all." example:"42"`
	Page       int            `json:"page" doc:"The number of this page." example:"1"`
	NextCursor *string        `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

// ProposalSubmission is the body of a submission.
type ProposalSubmission struct {
	Title        string  `json:"title" doc:"One line that names the improvement." example:"Retry webhook deliveries"`
	Category     string  `json:"category" doc:"What the proposal is about." example:"reliability"`
	Problem      string  `json:"problem" doc:"What is wrong today." example:"A delivery that fails once is lost."`
	SuggestedFix string  `json:"suggested_fix" doc:"What to do about it." example:"Retry with exponential backoff for a day."`
	Priority     *string `json:"priority,omitempty" doc:"How soon it should be reviewed; normal if left out." example:"high"`
	Status       *string `json:"status,omitempty" doc:"open if left out. A draft is seen by its submitter and by admins only." example:"open"`
}

// TransformSchema takes lists and limits from the domain.
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

// ProposalPatch is the body of a change: a decision (status), or an edit (the
// other fields), never both.
type ProposalPatch struct {
	Status         *string `json:"status,omitempty" doc:"The status to go to; needs svc:admin:admin. Send it alone or with resolution_note." example:"approved"`
	ResolutionNote *string `json:"resolution_note,omitempty" doc:"The reason; required to reject, unless there is duplicate_of." example:"We do this in the next release."`
	DuplicateOf    *string `json:"duplicate_of,omitempty" doc:"With the status rejected: the id of the proposal that is about the same."`
	TextVersion    *int64  `json:"text_version,omitempty" doc:"With status or an edit: the text_version that you read; 412 if the text has changed since. Votes do not change it." example:"1"`
	Title          *string `json:"title,omitempty" doc:"A new title."`
	Category       *string `json:"category,omitempty" doc:"A new category."`
	Problem        *string `json:"problem,omitempty" doc:"A new description of the problem."`
	SuggestedFix   *string `json:"suggested_fix,omitempty" doc:"A new suggested fix."`
	Priority       *string `json:"priority,omitempty" doc:"A new priority."`
}

// TransformSchema takes lists and limits from the domain.
func (ProposalPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	editableSchema(s)
	property(s, "status", oneOf(proposal.Statuses))
	property(s, "resolution_note", length(0, proposal.MaxNote), matching(prosePattern()))
	one := 1
	s.MinProperties = &one
	// One request decides or edits, and a note goes with a decision.
	property(s, "text_version", between(1, math.MaxInt32))
	edits := []string{"title", "category", "problem", "suggested_fix", "priority"}
	edit := anyField(edits...)
	edit.Not = anyField("resolution_note", "duplicate_of")
	ifThen(s, []string{"status"}, noneOf(edits...), edit)
	property(s, "duplicate_of", matching(proposalIDPattern))
	// A duplicate is a reason, too, and goes with a rejection only.
	s.AllOf = []*huma.Schema{{Extensions: map[string]any{
		"if":   rejection(),
		"then": &huma.Schema{AnyOf: []*huma.Schema{reason(), withFields("duplicate_of")}},
		"else": noneOf("duplicate_of"),
	}}}
	return s
}

// rejection is the schema of a decision to reject.
func rejection() *huma.Schema {
	return &huma.Schema{
		Required: []string{"status"}, Properties: map[string]*huma.Schema{"status": {Enum: []any{string(proposal.Rejected)}}},
	}
}

// reason is the schema of a decision with a note.
func reason() *huma.Schema {
	return &huma.Schema{
		Required: []string{"resolution_note"}, Properties: map[string]*huma.Schema{"resolution_note": stringSchema(matching(requiredPattern()))},
	}
}

func recordOf(p *proposal.Proposal, vote *proposal.Vote) Proposal {
	r := Proposal{
		ID: p.ID, Title: p.Title, Category: string(p.Category), Problem: p.Problem, SuggestedFix: p.SuggestedFix,
		Priority: string(p.Priority), Status: string(p.Status), SubmittedBy: p.SubmittedBy,
		SubmittedAt: stamp(p.SubmittedAt), UpdatedAt: stamp(p.UpdatedAt), VotesFor: p.VotesFor, VotesAgainst: p.VotesAgainst,
		ResolutionNote: p.ResolutionNote, DuplicateOf: orNull(p.DuplicateOf), AllowedTransitions: names(p.Status.Next()), FollowupID: orNull(p.FollowupID),
		FollowupStatus: orNull(p.FollowupStatus), Resolvable: p.Resolvable(), Fingerprint: orNull(p.Fingerprint),
		EvidenceCount: p.Evidence, TextVersion: p.TextVersion, VotesBy: VotesBy{People: Tally(p.People()), Agents: Tally(p.Agents())},
	}
	if vote != nil {
		r.MyVote = orNull(string(vote.Choice))
	}
	return r
}

func itemOf(it *proposal.Item, excerpt bool) ProposalItem {
	out := ProposalItem{
		ID: it.ID, Title: it.Title, Category: string(it.Category), Status: string(it.Status), Priority: string(it.Priority),
		SubmittedBy: it.SubmittedBy, SubmittedAt: stamp(it.SubmittedAt), VotesFor: it.VotesFor, VotesAgainst: it.VotesAgainst,
		MyVote: orNull(string(it.MyVote)), Fingerprint: orNull(it.Fingerprint), EvidenceCount: it.Evidence,
		TextVersion: it.TextVersion,
	}
	if excerpt {
		out.Excerpt = &it.Excerpt
	}
	return out
}
