package followup

import (
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Query selects a page of the list. Zero fields mean no filter, page 1, limit 20.
type Query struct {
	Status     Status
	Assignee   string // a ref, or Unassigned
	ProposalID string
	Page       int
	Limit      int
}

// Unassigned as Assignee matches follow-ups without an assignee.
const Unassigned = "none"

// Filter is a valid Query for the store.
type Filter struct {
	Org        string
	Status     Status
	Assignee   string
	Unassigned bool
	ProposalID string
	Offset     int64
	Limit      int
}

func (q *Query) check(org string) (Filter, error) {
	if q.Page == 0 {
		q.Page = 1
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	var fields []errs.Field
	add := func(name, msg string) {
		fields = append(fields, errs.Field{Path: errs.At(name), Message: msg})
	}
	f := Filter{Org: org, Limit: q.Limit}
	switch {
	case q.Status == "" || q.Status == All:
	case slices.Contains(Statuses, q.Status):
		f.Status = q.Status
	default:
		add("status", "must be one of open, in_progress, done, canceled or all")
	}
	switch {
	case q.Assignee == "" || q.Assignee == All:
	case q.Assignee == Unassigned:
		f.Unassigned = true
	default:
		if _, err := identity.ParseRef(org, q.Assignee); err != nil {
			add("assignee", "must be user:ID, agent:ID, none or all")
		}
		f.Assignee = q.Assignee
	}
	if q.ProposalID != "" {
		f.ProposalID = strings.ToLower(q.ProposalID)
		if len(q.ProposalID) > 64 || strings.ContainsFunc(f.ProposalID, notOfID) {
			add("proposal_id", "must be the id of a proposal")
		}
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		add("limit", "must be between 1 and "+strconv.Itoa(MaxLimit))
	}
	const maxPage = int64(1) << 56 // with a limit of 100 the offset stays below 2^63
	if q.Page < 1 || int64(q.Page) > maxPage {
		add("page", "must be at least 1 and small enough that such a page can exist")
	}
	if len(fields) > 0 {
		return Filter{}, errs.InvalidFields(fields...)
	}
	f.Offset = int64(q.Page-1) * int64(q.Limit)
	return f, nil
}

// notOfID reports whether a character cannot be part of an id.
func notOfID(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
