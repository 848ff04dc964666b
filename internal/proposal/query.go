package proposal

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
	"github.com/parley-dev/parley/internal/words"
)

// Limits of lists.
const (
	DefaultLimit = 20
	MaxLimit     = 100
	MaxSearch    = 200 // characters of q
	// MaxFound is the number of matches up to which a search counts. A search by votes sorts so many
	// of the most relevant matches.
	MaxFound = 10_000
)

// Sort is an order of the list.
type Sort string

// The orders. SortReview is the order for reviews: the most urgent first, then the newest.
const (
	SortReview Sort = "review"
	SortNewest Sort = "newest"
	SortOldest Sort = "oldest"
	SortVotes  Sort = "votes" // net votes (for minus against), then the newest
	// SortRelevance is the default of a search: words in the title first, then the newest.
	SortRelevance Sort = "relevance"
)

// Sorts lists the orders of every list. SearchSorts has that of a search, too.
var (
	Sorts       = []Sort{SortReview, SortNewest, SortOldest, SortVotes}
	SearchSorts = append(slices.Clone(Sorts), SortRelevance)
)

// All stands for "no filter" in every filter.
const All = "all"

// Query selects a page of the list. Zero fields mean the defaults: status open, no other filter,
// sort review, page 1, limit 20.
type Query struct {
	Status      Status // or All
	Category    Category
	Priority    Priority
	SubmittedBy string
	Kind        identity.Kind // of the submitter
	Evidence    Evidence
	Fingerprint string // of the friction that filed the proposal
	Text        string // all words must occur, the last one as a prefix
	Sort        Sort
	Page        int
	Limit       int
	Cursor      string // Page.Next of the previous page
	Excerpt     bool   // include the beginning of each problem
}

// Evidence is a filter: whether a proposal was filed from reported friction.
type Evidence string

// The values of the filter.
const (
	WithEvidence    Evidence = "yes"
	WithoutEvidence Evidence = "no"
)

// Evidences lists the values of the filter.
var Evidences = []Evidence{WithEvidence, WithoutEvidence}

// Filter is a valid Query for the store. Empty filters match all.
type Filter struct {
	Org         string
	Viewer      Viewer
	Status      Status
	Category    Category
	Priority    Priority
	SubmittedBy string
	Kind        identity.Kind // User or Agent; services submit nothing
	Evidence    Evidence
	Fingerprint string
	Words       []string
	Sort        Sort
	Offset      int64
	Limit       int
	After       *Position
	Excerpt     bool

	nothing bool // the filters contradict each other
}

// Position is the sort key of the last item of a page.
type Position struct {
	Rank  int   // of the priority, for review
	Score int64 // for votes and relevance
	ID    string
}

// Item is one entry of a list.
type Item struct {
	Proposal        // without Problem, SuggestedFix and ResolutionNote
	MyVote   Choice // empty if the viewer has not voted
	Excerpt  string // the beginning of Problem on one line, if requested
	Score    int    // in the order of relevance
}

// Found is one page of the matches of a search.
type Found struct {
	Items []Item // up to Limit+1, so that the caller can tell whether more follow
	Total int64  // at most MaxFound
	Exact bool   // Total counts all matches
	// Complete is false if the index lacks some proposals: it is being built after an upgrade, or very
	// many proposals arrive at once.
	Complete bool
}

// Page is one page of a list.
type Page struct {
	Items  []Item
	Total  int64
	Number int
	Limit  int
	Next   string // cursor of the next page; empty on the last page
	// Search is true for a list with words. Its total may not be exact, and its index not be complete;
	// see Found.
	Search, Exact, Complete bool
}

// check sets defaults and reports every invalid field.
func (q *Query) check(v Viewer) (Filter, error) {
	c := queryCheck{}
	c.enum("status", string(q.Status), names(Statuses))
	c.enum("category", string(q.Category), names(Categories))
	c.enum("priority", string(q.Priority), names(Priorities))
	if q.Sort != "" && !slices.Contains(SearchSorts, q.Sort) {
		c.add("sort", "must be one of "+join(SearchSorts))
	}
	if q.Page < 0 || q.Limit < 0 || q.Limit > MaxLimit {
		c.add("limit", "must be between 1 and "+strconv.Itoa(MaxLimit))
	}
	c.enum("submitted_by_kind", string(q.Kind), names(identity.Kinds))
	c.enum("evidence", string(q.Evidence), names(Evidences))
	c.text("fingerprint", q.Fingerprint, MaxSearch)
	c.text("submitted_by", q.SubmittedBy, MaxSearch)
	c.text("q", q.Text, MaxSearch)
	f := Filter{
		Org: v.Principal.Org, Viewer: v, Status: Status(unfiltered(string(q.Status))),
		Category: Category(unfiltered(string(q.Category))), Priority: Priority(unfiltered(string(q.Priority))),
		SubmittedBy: unfiltered(q.SubmittedBy), Kind: identity.Kind(unfiltered(string(q.Kind))),
		Evidence: Evidence(unfiltered(string(q.Evidence))), Fingerprint: unfiltered(q.Fingerprint),
		Words: words.Query(q.Text), Sort: q.Sort, Limit: q.Limit, Excerpt: q.Excerpt,
	}
	f.simplify()
	if q.Status == "" {
		f.Status = Open
	}
	switch {
	case f.Sort == "" && q.Text != "":
		f.Sort = SortRelevance
	case f.Sort == "":
		f.Sort = SortReview
	case f.Sort == SortRelevance && q.Text == "":
		c.add("sort", "relevance needs a search text (q); use another order or add one")
	}
	if f.Limit == 0 {
		f.Limit = DefaultLimit
	}
	switch {
	case q.Text != "" && len(f.Words) == 0:
		c.add("q", "must contain a letter, a digit or a symbol such as an emoji; punctuation is not searched")
	case len(f.Words) > words.MaxQuery:
		c.add("q", "must not have more than "+strconv.Itoa(words.MaxQuery)+" words")
	}
	switch {
	case q.Cursor != "" && q.Page != 0:
		c.add("cursor", "cannot be combined with page")
	case q.Cursor != "":
		pos, page, ok := f.decodeCursor(q.Cursor)
		if !ok {
			c.add("cursor", "is not a cursor of this list; "+
				"use the one of the previous page with the same filters and sort, or none")
		}
		f.After, q.Page = pos, page
	case q.Page == 0:
		q.Page = 1
	}
	if q.Page > 1 && f.After == nil {
		if int64(q.Page-1) > math.MaxInt64/int64(f.Limit)-1 {
			c.add("page", "is too large")
		} else {
			f.Offset = int64(q.Page-1) * int64(f.Limit)
		}
	}
	if len(c.fields) > 0 {
		return Filter{}, errs.InvalidFields(c.fields...)
	}
	return f, nil
}

// simplify removes redundant filters and detects contradictions, so that the store need not
// handle them.
func (f *Filter) simplify() {
	if f.SubmittedBy != "" {
		kind, _, ref := strings.Cut(f.SubmittedBy, ":")
		// A text that is not a ref matches nothing.
		f.nothing = !ref || f.Kind != "" && string(f.Kind) != kind
		f.Kind = ""
	}
	f.nothing = f.nothing || f.Kind == identity.Service
	if f.Fingerprint != "" {
		f.nothing = f.nothing || f.Evidence == WithoutEvidence
		f.Evidence = ""
	}
}

type queryCheck struct{ fields []errs.Field }

func (c *queryCheck) add(name, msg string) {
	c.fields = append(c.fields, errs.Field{Path: errs.At(name), Message: msg})
}

func (c *queryCheck) enum(name, v string, known []string) {
	if v != "" && v != All && !slices.Contains(known, v) {
		c.add(name, "must be one of "+strings.Join(known, ", ")+" or "+All)
	}
}

func (c *queryCheck) text(name, v string, most int) {
	if problem := (text.Rule{Form: text.Search, Max: most}).Check(v); problem != "" {
		c.add(name, problem)
	}
}

func names[S ~string](known []S) []string {
	out := make([]string, len(known))
	for i, k := range known {
		out[i] = string(k)
	}
	return out
}

func unfiltered(s string) string {
	if s == All {
		return ""
	}
	return s
}

// position returns the position of an item in the order of the filter.
func (f *Filter) position(it *Item) Position {
	pos := Position{ID: it.ID}
	switch f.Sort {
	case SortReview:
		pos.Rank = it.Priority.Rank()
	case SortVotes:
		pos.Score = int64(it.VotesFor) - int64(it.VotesAgainst)
	case SortRelevance:
		pos.Score = int64(it.Score)
	case SortNewest, SortOldest:
	}
	return pos
}

func (f *Filter) encodeCursor(pos Position, page int) string {
	return f.list().At().Int(int64(page)).Int(int64(pos.Rank)).Int(pos.Score).Text(pos.ID).String()
}

func (f *Filter) decodeCursor(s string) (*Position, int, bool) {
	r := f.list().Read(s)
	page, rank, score, id := r.Int(), r.Int(), r.Int(), r.Text()
	if !r.Done() || page < 1 || page > math.MaxInt32 || rank < 0 || rank >= int64(len(Priorities)) || !ValidID(id) {
		return nil, 0, false
	}
	return &Position{Rank: int(rank), Score: score, ID: id}, int(page), true
}

// list identifies the list of a cursor. The limit is not part of it, so a reader may change it.
func (f *Filter) list() cursor.List {
	return cursor.Of("proposals", f.Org, string(f.Status), string(f.Category), string(f.Priority), f.SubmittedBy,
		strings.Join(f.Words, " "), string(f.Sort), string(f.Kind), string(f.Evidence), f.Fingerprint)
}
