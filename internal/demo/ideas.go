package demo

import (
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/proposal"
)

// idea is a proposal of the company, with what became of it.
type idea struct {
	title    string
	category proposal.Category
	priority proposal.Priority
	by       string  // ref of the submitter
	age      float64 // days
	problem  string
	fix      string
	votes    string            // voters in their order; + is for, - is against; @ marks an agent
	says     map[string]string // comments by voter, without the mark
	edited   string            // a better title, half a day after the submission
	end      ending
}

// submission returns the command that files the idea.
func (i *idea) submission() proposal.Submission {
	return proposal.Submission{
		Title: i.title, Category: i.category, Problem: i.problem, SuggestedFix: i.fix, Priority: i.priority,
	}
}

// ending is the decision on an idea. The zero value is an idea that is open.
type ending struct {
	status    proposal.Status
	after     float64 // days since the submission
	by        string  // id of the admin
	note      string
	duplicate string // title of the original
	reopened  bool   // rejected, and opened again a day later
	work      work
}

// work is the follow-up of an approved idea.
type work struct {
	to     string // ref of the assignee; may be empty
	status followup.Status
}

// ideas are all that were submitted; friction filed the others.
var ideas = slices.Concat(reliability, performance, security, processes, documents, features)

// days returns a number of days as a duration.
func days(n float64) time.Duration { return time.Duration(n * float64(day)) }

// The helpers below describe endings.

func draft() ending { return ending{status: proposal.Draft} }

func approved(after float64, by, note, to string, s followup.Status) ending {
	return ending{status: proposal.Approved, after: after, by: by, note: note, work: work{to, s}}
}

func resolved(after float64, by, note, to string) ending {
	return ending{status: proposal.Resolved, after: after, by: by, note: note, work: work{to, followup.Done}}
}

func rejected(after float64, by, note string) ending {
	return ending{status: proposal.Rejected, after: after, by: by, note: note}
}

func duplicate(after float64, by, original string) ending {
	return ending{status: proposal.Rejected, after: after, by: by, duplicate: original}
}

func reopened(after float64, by, note string) ending {
	return ending{status: proposal.Rejected, after: after, by: by, note: note, reopened: true}
}
