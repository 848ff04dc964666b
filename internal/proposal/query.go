package proposal

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Limits of lists.
const (
	DefaultLimit = 20
	MaxLimit     = 100
	MaxSearch    = 200 // characters of q
)

// Sort is an order of the list.
type Sort string

// The orders. Review is the order in which admins should look at proposals:
// the most urgent first, then the newest.
const (
	SortReview Sort = "review"
	SortNewest Sort = "newest"
	SortOldest Sort = "oldest"
	SortVotes  Sort = "votes" // votes for less votes against, then the newest
)

// Sorts lists every order.
var Sorts = []Sort{SortReview, SortNewest, SortOldest, SortVotes}

// All stands for "no filter" in every filter.
const All = "all"

// Query asks for a page of the list. Zero fields mean the defaults: status open,
// no other filter, sort review, page 1, limit 20.
type Query struct {
	Status      Status // All: every status
	Category    Category
	Priority    Priority
	SubmittedBy string
	Kind        identity.Kind // of the submitter
	Evidence    Evidence
	Fingerprint string // of the friction that filed the proposal
	Text        string // words that must all occur, the last one as a prefix
	Sort        Sort
	Page        int
	Limit       int
	Cursor      string // continues a list where an earlier page ended
	Excerpt     bool   // read the beginning of each problem
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

// Filter is a checked Query as the store gets it. Empty filters match all.
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

// Position is where a page ended, in the sort's own terms.
type Position struct {
	Rank  int   // of the priority, for review
	Score int64 // for votes
	ID    string
}

// Item is one line of a list.
type Item struct {
	Proposal        // without Problem, SuggestedFix and ResolutionNote
	MyVote   Choice // empty: the viewer has not voted
	Excerpt  string // the beginning of Problem on one line; empty unless it was asked for
}

// Page is one page of a list.
type Page struct {
	Items  []Item
	Total  int64
	Number int
	Limit  int
	Next   string // cursor of the next page; empty: this is the last
}

// check fills in defaults and refuses what makes no sense.
func (q *Query) check(v Viewer) (Filter, error) {
	c := queryCheck{}
	c.enum("status", string(q.Status), names(Statuses))
	c.enum("category", string(q.Category), names(Categories))
	c.enum("priority", string(q.Priority), names(Priorities))
	if q.Sort != "" && !slices.Contains(Sorts, q.Sort) {
		c.add("sort", "must be one of "+join(Sorts))
	}
	if q.Page < 0 || q.Limit < 0 || q.Limit > MaxLimit {
		c.add("limit", "must be between 1 and "+strconv.Itoa(MaxLimit))
	}
	c.enum("submitted_by_kind", string(q.Kind), names(identity.Kinds))
	c.enum("evidence", string(q.Evidence), names(Evidences))
	c.text("fingerprint", q.Fingerprint)
	c.text("submitted_by", q.SubmittedBy)
	c.text("q", q.Text)
	f := Filter{
		Org: v.Principal.Org, Viewer: v, Status: Status(unfiltered(string(q.Status))),
		Category: Category(unfiltered(string(q.Category))), Priority: Priority(unfiltered(string(q.Priority))),
		SubmittedBy: unfiltered(q.SubmittedBy), Kind: identity.Kind(unfiltered(string(q.Kind))),
		Evidence: Evidence(unfiltered(string(q.Evidence))), Fingerprint: unfiltered(q.Fingerprint),
		Words: Words(q.Text), Sort: q.Sort, Limit: q.Limit, Excerpt: q.Excerpt,
	}
	f.simplify()
	if q.Status == "" {
		f.Status = Open
	}
	if f.Sort == "" {
		f.Sort = SortReview
	}
	if f.Limit == 0 {
		f.Limit = DefaultLimit
	}
	if q.Text != "" && len(f.Words) == 0 {
		c.add("q", "must contain a letter or a digit")
	}
	switch {
	case q.Cursor != "" && q.Page != 0:
		c.add("cursor", "cannot be combined with page")
	case q.Cursor != "":
		pos, page, ok := f.decodeCursor(q.Cursor)
		if !ok {
			c.add("cursor", "is not a cursor of this list; use the one of the previous page with the same filters and sort, or none")
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

// simplify drops filters that another one implies, and notes those that contradict each
// other, so that the store never sees either.
func (f *Filter) simplify() {
	if f.SubmittedBy != "" {
		kind, _, ref := strings.Cut(f.SubmittedBy, ":")
		// What is no ref has submitted nothing.
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

func (c *queryCheck) text(name, v string) {
	switch {
	case !text.Storable(v):
		c.add(name, text.Unstorable)
	case utf8.RuneCountInString(v) > MaxSearch:
		c.add(name, "must have at most "+strconv.Itoa(MaxSearch)+" characters")
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

// position is where an item stands in the filter's order.
func (f *Filter) position(it *Item) Position {
	pos := Position{ID: it.ID}
	switch f.Sort {
	case SortReview:
		pos.Rank = it.Priority.Rank()
	case SortVotes:
		pos.Score = int64(it.VotesFor) - int64(it.VotesAgainst)
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

// list tells lists apart. The limit is not part of it: a reader may change it on the way.
func (f *Filter) list() cursor.List {
	return cursor.Of("proposals", f.Org, string(f.Status), string(f.Category), string(f.Priority), f.SubmittedBy,
		strings.Join(f.Words, " "), string(f.Sort), string(f.Kind), string(f.Evidence), f.Fingerprint)
}
