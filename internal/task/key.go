package task

import (
	"regexp"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// AgentKey identifies an agent in the store and between nodes. The id alone is unique only
// within an org.
type AgentKey struct{ Org, ID string }

// Key identifies a task by its sender's id.
type Key struct {
	Org    string // of the agent
	Agent  string
	Sender identity.Principal
	ID     string
}

// Key returns the sender's key of the task.
func (t *Task) Key() Key { return Key{Org: t.Org, Agent: t.Agent, Sender: t.Sender, ID: t.ID} }

// Ref identifies a task in the store and between nodes.
type Ref struct{ Org, UID string }

// Ref returns the reference of the task.
func (t *Task) Ref() Ref { return Ref{t.Org, t.UID} }

var uidPattern = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// ValidUID reports whether s has the form of a uid.
func ValidUID(s string) bool { return uidPattern.MatchString(s) }

// UIDsFrom returns the lower bound of the uids of tasks that were created at t or later. A uid is
// a ULID in lower case, which starts with its time in milliseconds.
func UIDsFrom(t time.Time) string {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	var out [10]byte
	ms := max(t.UnixMilli(), 0)
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = digits[ms&31]
		ms >>= 5
	}
	return string(out[:])
}

// Current is the input of a decision. The task is locked until the change is written.
type Current struct {
	Task  Task
	Clock time.Time // the store's clock, by which leases are measured
}

// Content selects the content of a task to read. The status is always read.
type Content struct {
	History   bool
	Artifacts bool
	// Sparse optimizes for logs that hold much that is not selected: only rows with artifacts
	// are decoded. It is slower for short logs.
	Sparse bool
	// Clip, if not 0, omits content that a page does not show: texts in artifacts are cut to
	// this many bytes, and larger data and the content of files are omitted. Part.Left counts
	// the omitted bytes.
	Clip int
	// Admit is called with the task's row before anything large is read. Its error ends the
	// read. It may be nil.
	Admit func(Task) error
}

// All selects the whole task.
var All = Content{History: true, Artifacts: true}
