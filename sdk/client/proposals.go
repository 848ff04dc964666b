package client

import (
	"context"
	"iter"
	"time"
)

// ProposalsService submits, reads, votes on and decides proposals.
type ProposalsService struct{ service }

// Category is the category of a proposal.
type Category string

// The categories.
const (
	Reliability   Category = "reliability"
	Performance   Category = "performance"
	Security      Category = "security"
	Process       Category = "process"
	Feature       Category = "feature"
	Documentation Category = "documentation"
)

// Priority is the priority of a proposal.
type Priority string

// The priorities.
const (
	Low    Priority = "low"
	Normal Priority = "normal"
	High   Priority = "high"
)

// ProposalStatus is the status of a proposal.
type ProposalStatus string

// The statuses of proposals.
const (
	ProposalDraft    ProposalStatus = "draft"
	ProposalOpen     ProposalStatus = "open"
	ProposalApproved ProposalStatus = "approved"
	ProposalRejected ProposalStatus = "rejected"
	ProposalResolved ProposalStatus = "resolved"
)

// Proposal is a whole proposal.
type Proposal struct {
	ID                 string           `json:"id"`
	Title              string           `json:"title"`
	Category           Category         `json:"category"`
	Problem            string           `json:"problem"`
	SuggestedFix       string           `json:"suggested_fix"`
	Priority           Priority         `json:"priority"`
	Status             ProposalStatus   `json:"status"`
	SubmittedBy        string           `json:"submitted_by"`
	SubmittedAt        time.Time        `json:"submitted_at"`
	UpdatedAt          time.Time        `json:"updated_at"`
	VotesFor           int              `json:"votes_for"`
	VotesAgainst       int              `json:"votes_against"`
	VotesBy            VotesBy          `json:"votes_by"`
	MyVote             Choice           `json:"my_vote"` // empty: none
	ResolutionNote     string           `json:"resolution_note"`
	DuplicateOf        string           `json:"duplicate_of"` // empty: not a duplicate
	AllowedTransitions []ProposalStatus `json:"allowed_transitions"`
	FollowupID         string           `json:"followup_id"`     // empty before approval
	FollowupStatus     FollowupStatus   `json:"followup_status"` // empty before approval
	Resolvable         bool             `json:"resolvable"`
	Fingerprint        string           `json:"fingerprint"` // of the friction that filed it; empty: none
	EvidenceCount      int              `json:"evidence_count"`
	TextVersion        int              `json:"text_version"` // grows when the text changes
}

// VotesBy splits the votes into those of people and of agents.
type VotesBy struct {
	People Tally `json:"people"`
	Agents Tally `json:"agents"`
}

// Tally counts votes.
type Tally struct {
	For     int `json:"for"`
	Against int `json:"against"`
}

// ProposalItem is a proposal in a list.
type ProposalItem struct {
	ID            string         `json:"id"`
	Title         string         `json:"title"`
	Category      Category       `json:"category"`
	Priority      Priority       `json:"priority"`
	Status        ProposalStatus `json:"status"`
	SubmittedBy   string         `json:"submitted_by"`
	SubmittedAt   time.Time      `json:"submitted_at"`
	VotesFor      int            `json:"votes_for"`
	VotesAgainst  int            `json:"votes_against"`
	MyVote        Choice         `json:"my_vote"`     // empty: none
	Fingerprint   string         `json:"fingerprint"` // of the friction that filed it; empty: none
	EvidenceCount int            `json:"evidence_count"`
	TextVersion   int            `json:"text_version"`
	Excerpt       string         `json:"excerpt"` // of the problem, if ProposalListParams.Include asks for it
}

// ProposalListParams filters and sorts a list of proposals. Zero fields do not filter.
type ProposalListParams struct {
	Status          string   `url:"status"` // a status, or all; open if empty
	Category        Category `url:"category"`
	Priority        Priority `url:"priority"`
	SubmittedBy     string   `url:"submitted_by"`      // a principal, such as agent:scout
	SubmittedByKind string   `url:"submitted_by_kind"` // user, agent or service
	Evidence        string   `url:"evidence"`          // yes or no: only those that friction filed, or did not file
	Fingerprint     string   `url:"fingerprint"`
	Query           string   `url:"q"`    // words that must all occur
	Sort            string   `url:"sort"` // review (default), newest, oldest, votes or, with Query, relevance (its default)
	Page            int      `url:"page"`
	Limit           int      `url:"limit"` // up to 100
	Cursor          string   `url:"cursor"`
	Include         string   `url:"include"` // excerpt
}

func (s *ProposalsService) list(p ProposalListParams) listing[ProposalItem] {
	r := read("proposals")
	r.query = values(p)
	return listing[ProposalItem]{c: s.c, call: r, member: "proposals"}
}

// List returns one page of proposals.
func (s *ProposalsService) List(
	ctx context.Context, p ProposalListParams, opts ...Option,
) (*Page[ProposalItem], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the proposals of all pages.
func (s *ProposalsService) All(
	ctx context.Context, p ProposalListParams, opts ...Option,
) iter.Seq2[ProposalItem, error] {
	return s.list(p).all(ctx, opts)
}

// ProposalSubmission is a new proposal.
type ProposalSubmission struct {
	Title        string         `json:"title"`
	Category     Category       `json:"category"`
	Problem      string         `json:"problem"`
	SuggestedFix string         `json:"suggested_fix"`
	Priority     Priority       `json:"priority,omitempty"` // normal if empty
	Status       ProposalStatus `json:"status,omitempty"`   // open if empty, or draft
}

// Submit files a proposal.
func (s *ProposalsService) Submit(ctx context.Context, p ProposalSubmission, opts ...Option) (*Proposal, error) {
	return fetch[Proposal](ctx, s.c, post(p, "proposals"), opts)
}

// Get returns one proposal.
func (s *ProposalsService) Get(ctx context.Context, id string, opts ...Option) (*Proposal, error) {
	return fetch[Proposal](ctx, s.c, read("proposals", id), opts)
}

// ProposalPatch changes the text of a proposal, or its status. Nil fields do not change.
type ProposalPatch struct {
	Title          *string         `json:"title,omitempty"`
	Category       *Category       `json:"category,omitempty"`
	Problem        *string         `json:"problem,omitempty"`
	SuggestedFix   *string         `json:"suggested_fix,omitempty"`
	Priority       *Priority       `json:"priority,omitempty"`
	Status         *ProposalStatus `json:"status,omitempty"`
	ResolutionNote *string         `json:"resolution_note,omitempty"` // with Status; required to reject
	DuplicateOf    *string         `json:"duplicate_of,omitempty"`    // with the status rejected
	TextVersion    *int            `json:"text_version,omitempty"`    // refuse (412) if the text has another version
}

// Update changes a proposal. One patch changes the text or the status, not both.
func (s *ProposalsService) Update(ctx context.Context, id string, p ProposalPatch, opts ...Option) (*Proposal, error) {
	return fetch[Proposal](ctx, s.c, patch(p, "proposals", id), opts)
}

// HistoryEntry is one change of a proposal.
type HistoryEntry struct {
	Seq         int            `json:"seq"`
	At          time.Time      `json:"at"`
	Actor       string         `json:"actor"`
	Kind        string         `json:"kind"` // submitted, edited, status_changed, voted or vote_withdrawn
	From        ProposalStatus `json:"from"`
	To          ProposalStatus `json:"to"`
	Note        string         `json:"note"`
	Vote        Choice         `json:"vote"`
	Comment     string         `json:"comment"`
	DuplicateOf string         `json:"duplicate_of"`
	Changes     []FieldChange  `json:"changes"`
}

// FieldChange is an edit of one field.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// PageParams selects a page of a list with page numbers.
type PageParams struct {
	Page  int `url:"page"`  // from 1
	Limit int `url:"limit"` // up to 100
}

func (s *ProposalsService) history(id string, p PageParams) listing[HistoryEntry] {
	r := read("proposals", id, "history")
	r.query = values(p)
	return listing[HistoryEntry]{c: s.c, call: r, member: "history", paging: byNumber}
}

// History returns one page of the history of a proposal.
func (s *ProposalsService) History(
	ctx context.Context, id string, p PageParams, opts ...Option,
) (*Page[HistoryEntry], error) {
	return s.history(id, p).page(ctx, opts)
}

// AllHistory iterates over the whole history of a proposal.
func (s *ProposalsService) AllHistory(ctx context.Context, id string, opts ...Option) iter.Seq2[HistoryEntry, error] {
	return s.history(id, PageParams{}).all(ctx, opts)
}
