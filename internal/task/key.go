package task

import (
	"regexp"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// AgentKey names an agent inside the store and between nodes. The id alone does not: it
// is unique within an org only.
type AgentKey struct{ Org, ID string }

// Key names a task as its sender does.
type Key struct {
	Org    string // of the agent
	Agent  string
	Sender identity.Principal
	ID     string
}

// Key is how the task's sender names it.
func (t *Task) Key() Key { return Key{Org: t.Org, Agent: t.Agent, Sender: t.Sender, ID: t.ID} }

// Ref names a task inside the store and between nodes.
type Ref struct{ Org, UID string }

// Ref is how the platform names the task.
func (t *Task) Ref() Ref { return Ref{t.Org, t.UID} }

var uidPattern = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// ValidUID reports whether s can be our own id of a task.
func ValidUID(s string) bool { return uidPattern.MatchString(s) }

// Current is what a decision is made on, locked until it is written.
type Current struct {
	Task  Task
	Clock time.Time // by which leases are measured: the store's own
}

// Content says how much of a task to read. The status is always read.
type Content struct {
	History   bool
	Artifacts bool
	// Sparse says that the log may hold much that is not asked for: only rows with
	// artifacts are decoded. It costs more where the log is short.
	Sparse bool
	// Clip, if not 0, leaves out what a page does not show: of texts and data in artifacts all
	// but so many bytes, of files their content. Part.Left counts it.
	Clip int
	// Admit is asked with the task's row before anything large is read. Its error ends
	// the read. nil: everything is admitted.
	Admit func(Task) error
}

// All is the whole task.
var All = Content{History: true, Artifacts: true}
