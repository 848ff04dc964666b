package client

import (
	"context"
	"time"
)

// ProposalCountParams selects the proposals to count. Zero fields do not filter.
type ProposalCountParams struct {
	Category        Category `url:"category"`
	Priority        Priority `url:"priority"`
	SubmittedBy     string   `url:"submitted_by"`
	SubmittedByKind string   `url:"submitted_by_kind"` // user, agent or service
	Evidence        string   `url:"evidence"`          // yes or no: only those that friction filed, or did not file
	Fingerprint     string   `url:"fingerprint"`
	Query           string   `url:"q"`
}

// ProposalCounts counts proposals by status.
type ProposalCounts struct {
	Counts map[ProposalStatus]int64 `json:"counts"`
	Total  int64                    `json:"total"`
}

// Counts counts proposals by status.
func (s *ProposalsService) Counts(ctx context.Context, p ProposalCountParams, opts ...Option) (*ProposalCounts, error) {
	r := read("proposals", "counts")
	r.query = values(p)
	return fetch[ProposalCounts](ctx, s.c, r, opts)
}

// ProposalGroup is a group of proposals with the same submitter or fingerprint.
type ProposalGroup struct {
	Key           string    `json:"key"`
	Count         int       `json:"count"`
	EvidenceCount int       `json:"evidence_count"`
	OldestAt      time.Time `json:"oldest_at"`
	NewestAt      time.Time `json:"newest_at"`
}

// ProposalGroupParams selects the proposals to group. Zero fields do not filter.
type ProposalGroupParams struct {
	By              string   `url:"by"`     // submitter or fingerprint
	Status          string   `url:"status"` // a status, or all; open if empty
	Category        Category `url:"category"`
	Priority        Priority `url:"priority"`
	SubmittedBy     string   `url:"submitted_by"`
	SubmittedByKind string   `url:"submitted_by_kind"` // user, agent or service
	Evidence        string   `url:"evidence"`          // yes or no: only those that friction filed, or did not file
	Fingerprint     string   `url:"fingerprint"`
	Query           string   `url:"q"`
}

// Groups returns the 100 largest groups of proposals, by submitter or fingerprint.
func (s *ProposalsService) Groups(ctx context.Context, p ProposalGroupParams, opts ...Option) ([]ProposalGroup, error) {
	r := read("proposals", "groups")
	r.query = values(p)
	return items(listing[ProposalGroup]{c: s.c, call: r, member: "groups"}.page(ctx, opts))
}

// SimilarProposal is a proposal that shares words with a text.
type SimilarProposal struct {
	ID          string         `json:"id"`
	Title       string         `json:"title"`
	Status      ProposalStatus `json:"status"`
	SubmittedBy string         `json:"submitted_by"`
	SubmittedAt time.Time      `json:"submitted_at"`
	Excerpt     string         `json:"excerpt"`
	Words       int            `json:"words"` // number of shared words
}

// SimilarParams is a text to find similar proposals for.
type SimilarParams struct {
	Title   string `url:"title"`
	Problem string `url:"problem"`
	Limit   int    `url:"limit"` // up to 5
}

// FindSimilar returns proposals that are similar to a text, before it is submitted.
func (s *ProposalsService) FindSimilar(
	ctx context.Context, p SimilarParams, opts ...Option,
) ([]SimilarProposal, error) {
	r := read("proposals", "similar")
	r.query = values(p)
	return items(listing[SimilarProposal]{c: s.c, call: r, member: "similar"}.page(ctx, opts))
}

// Similar returns up to limit likely duplicates of a proposal; 5 if it is 0.
func (s *ProposalsService) Similar(
	ctx context.Context, id string, limit int, opts ...Option,
) ([]SimilarProposal, error) {
	r := read("proposals", id, "similar")
	r.query = values(struct {
		Limit int `url:"limit"`
	}{limit})
	return items(listing[SimilarProposal]{c: s.c, call: r, member: "similar"}.page(ctx, opts))
}

// items returns the items of a list that has one page.
func items[T any](p *Page[T], err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return p.Items, nil
}

// ProposalDecisions is one decision on up to 100 proposals.
type ProposalDecisions struct {
	Status         ProposalStatus `json:"status"`
	ResolutionNote string         `json:"resolution_note,omitempty"`
	Items          []DecisionItem `json:"items"`
}

// DecisionItem is a proposal to decide, as the caller read it.
type DecisionItem struct {
	ID          string `json:"id"`
	TextVersion int    `json:"text_version"`
}

// DecisionResults has the result for each proposal.
type DecisionResults struct {
	Results []DecisionResult `json:"results"`
	Done    int              `json:"done"`
	Failed  int              `json:"failed"`
}

// DecisionResult is the result for one proposal.
type DecisionResult struct {
	ID         string         `json:"id"`
	Status     ProposalStatus `json:"status"`
	FollowupID string         `json:"followup_id"`
	Replayed   bool           `json:"replayed"` // decided before, under the same idempotency key
	Error      *DecisionError `json:"error"`    // nil: it was decided
}

// DecisionError is the reason why a proposal was not decided.
type DecisionError struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Decide changes the status of several proposals. Each succeeds or fails by itself.
func (s *ProposalsService) Decide(ctx context.Context, d ProposalDecisions, opts ...Option) (*DecisionResults, error) {
	return fetch[DecisionResults](ctx, s.c, post(d, "proposals", "decisions"), opts)
}

// NotesService manages saved notes for rejecting proposals.
type NotesService struct{ service }

// SavedNote is a note that can be reused.
type SavedNote struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	Text      string    `json:"text"`
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
}

// SavedNoteCreation is a new note.
type SavedNoteCreation struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// List returns all notes of the org, by title.
func (s *NotesService) List(ctx context.Context, opts ...Option) ([]SavedNote, error) {
	return items(listing[SavedNote]{c: s.c, call: read("notes"), member: "notes"}.page(ctx, opts))
}

// Create saves a note.
func (s *NotesService) Create(ctx context.Context, n SavedNoteCreation, opts ...Option) (*SavedNote, error) {
	return fetch[SavedNote](ctx, s.c, post(n, "notes"), opts)
}

// Delete deletes a note and returns it.
func (s *NotesService) Delete(ctx context.Context, id string, opts ...Option) (*SavedNote, error) {
	return fetch[SavedNote](ctx, s.c, remove(false, "notes", id), opts)
}
