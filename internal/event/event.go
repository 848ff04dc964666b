// Package event has the log of what happens in an org: numbered events, which are written in the
// transaction of the change that they report.
//
// Kinds (kinds.go) is the table of all types. Filter (filter.go) selects events and is the only
// rule of who sees which. Service (service.go) serves readers: pages, long polls and streams.
// The package contains no HTTP and no SQL, and does not know the records that events are about.
package event

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"
)

// Event reports one change in an org.
type Event struct {
	Org     string
	Seq     int64 // position in the org's log: 1, 2, 3, …
	ID      string
	Type    Type
	At      time.Time
	Subject string // kind and id of the record, e.g. "proposal:prop-01k5…"
	Actor   string // a ref, e.g. "user:ada", or System
	Scope   Scope
	Version int             // of the shape of Data; see Kind
	Data    json.RawMessage // the record as REST shows it, after the change
}

// New returns an event about a change that is about to be written.
func New(org string, t Type, at time.Time, subject, actor string, scope Scope, data json.RawMessage) Event {
	return Event{
		Org: org, ID: NewID(), Type: t, At: at, Subject: subject, Actor: actor, Scope: scope,
		Version: Kinds[positions[t]].Version, Data: data,
	}
}

// System is the actor of changes that Parley makes by itself.
const System = "system"

// NewID returns a new event id. Ids are random, so that they are unique, but they are no secrets:
// a change must not wait for random numbers of the operating system.
func NewID() string {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	id := [30]byte{'e', 'v', 't', '-'}
	for i := 4; i < len(id); i += 13 {
		n := rand.Uint64()
		for j := range 13 {
			id[i+j] = digits[n>>(5*j)&31]
		}
	}
	return string(id[:])
}

// Scope limits who sees an event.
type Scope string

// Members is the scope of events that every reader of the org sees.
const Members Scope = ""

// Admins is the scope of events that only admins see.
const Admins Scope = "admins"

// Except for admins, these scopes name one principal, by its ref.
const (
	draftPrefix = "draft "
	onlyPrefix  = "only "
)

// Draft is the scope of events about a draft: its submitter and admins see them, webhooks do not
// get them.
func Draft(submitter string) Scope { return Scope(draftPrefix + submitter) }

// Only is the scope of events that admins and one principal see, such as the sender of a task.
func Only(ref string) Scope { return Scope(onlyPrefix + ref) }

// Viewer is a reader of events.
type Viewer struct {
	Ref   string // its principal
	Admin bool
	// NoDrafts hides drafts from admins, too. Webhooks have it.
	NoDrafts bool
}

// Sees reports whether the viewer may see events of this scope.
func (v Viewer) Sees(s Scope) bool {
	submitter, draft := strings.CutPrefix(string(s), draftPrefix)
	switch {
	case s == Members:
		return true
	case draft && v.NoDrafts:
		return false
	case v.Admin:
		return true
	case draft:
		return submitter == v.Ref
	}
	ref, only := strings.CutPrefix(string(s), onlyPrefix)
	return only && ref == v.Ref
}
