package task

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Current is what a decision is made on, locked until it is written.
type Current struct {
	Task  Task
	Clock time.Time // by which leases are measured: the store's own
}

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

// Worker is a process that does an agent's work, as presence sees it.
type Worker struct {
	Org      string
	Agent    string
	Name     string
	Capacity int
	SeenAt   time.Time
}

// Load is what an agent's workers have to do.
type Load struct {
	Capacity int // of the live workers
	Leased   int // tasks under a live lease
}

// DirectMessage is a fire-and-forget message that waits for a worker.
type DirectMessage struct {
	ID      string
	Org     string
	Agent   string
	From    identity.Principal
	Message Message
	At      time.Time
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

// Batch bounds how much is read at once: the first item is always part of it.
type Batch struct {
	Most  int
	Bytes int64
}

// Filter selects tasks of an org's agents.
type Filter struct {
	Org        string
	Agent      string
	Sender     *identity.Principal
	State      State
	ContextID  string
	FollowupID string
	Before     string // uid; continues a list, newest first
	Limit      int
}

// Store keeps tasks, their logs, direct messages and what is known of workers.
type Store interface {
	// Insert writes a new task and its first events. A taken key is Conflict and
	// nothing is written. lease, if not zero, is how long the task's lease lasts,
	// measured by the store's clock.
	InsertTask(ctx context.Context, c Change, lease time.Duration) error
	// UpdateTask locks a task, runs decide and writes what it returns. decide may
	// run more than once and must be pure. bytes is about how much text it handles: a
	// store with one writer need not run a large decision there.
	UpdateTask(ctx context.Context, org, uid string, bytes int64, decide func(Current) (Change, error)) (Change, error)
	// UpdateTaskOnce is UpdateTask for a command with an idempotency key in its context:
	// Reported of the change is kept. If the command was carried out before, the change
	// that is returned has nothing but Reported, of the first time.
	UpdateTaskOnce(ctx context.Context, org, uid string, bytes int64, decide func(Current) (Change, error)) (Change, error)
	// UpdateTaskByKey is UpdateTask for the sender's own name of the task.
	UpdateTaskByKey(ctx context.Context, k Key, bytes int64, decide func(Current) (Change, error)) (Change, error)
	// FinishTask writes a change that ends a lease and was decided on a known row, if
	// the row is still that one under a live lease; else it writes nothing and
	// returns ErrChanged.
	FinishTask(ctx context.Context, known Task, c Change) error
	// ClaimTasks runs decide on waiting tasks of an agent, oldest first, within the
	// bounds of the batch; no two claims get the same task.
	ClaimTasks(ctx context.Context, org, agent string, b Batch, decide func(Current) (Change, error)) ([]Change, error)
	// ExpireLeases runs decide on up to most tasks whose lease has run out.
	ExpireLeases(ctx context.Context, most int, decide func(Current) (Change, error)) ([]Change, error)
	// LeasesOf runs decide on up to most tasks whose lease is held by a worker with
	// the given prefix of its name.
	LeasesOf(ctx context.Context, workerPrefix string, most int, decide func(Current) (Change, error)) ([]Change, error)

	// TaskByKey and TaskByUID return the task with as much of its log folded in as was
	// asked for.
	TaskByKey(ctx context.Context, k Key, l Content) (Task, error)
	TaskByUID(ctx context.Context, org, uid string, l Content) (Task, error)
	// TaskArtifact returns one artifact of a task, by its number in Task.Artifacts, and reads
	// no more of the others than it takes to find it. admit is asked with about how many bytes it
	// has before it is read; its error ends the read.
	TaskArtifact(ctx context.Context, org, uid string, number int, admit func(bytes int64) error) (Artifact, error)
	// TaskEvents returns up to most events after the given one: none only if there
	// are none, but fewer if they are large.
	TaskEvents(ctx context.Context, org, uid string, after int64, most int) ([]Event, error)
	// TaskEventsSize returns about how many bytes TaskEvents would return.
	TaskEventsSize(ctx context.Context, org, uid string, after int64, most int) (int64, error)
	// Tasks lists rows, newest first, without messages and artifacts.
	Tasks(ctx context.Context, f Filter) ([]Task, error)
	// OwnTasks lists tasks of one sender with one agent, the one that changed last
	// first, with their status but neither history nor artifacts. It counts all that
	// match, whatever Before and Limit say.
	OwnTasks(ctx context.Context, f OwnFilter) (OwnRows, error)
	// TaskSeqs returns the last event's number of each task that is still there.
	TaskSeqs(ctx context.Context, refs []Ref) (map[Ref]int64, error)
	// SweepTasks deletes up to most tasks that ended before the given time.
	SweepTasks(ctx context.Context, endedBefore time.Time, most int) (int, error)

	// TaskRow returns a task without messages and artifacts.
	TaskRow(ctx context.Context, org, uid string) (Task, error)
	// TaskPushes lists the push configurations of a task, ordered by id; never nil.
	TaskPushes(ctx context.Context, org, uid string) ([]Push, error)
	// Pushes lists the push configurations of an org, newest task first.
	Pushes(ctx context.Context, f PushFilter) ([]Push, error)
	// UpdatePush locks a push configuration, runs decide and writes the State, Cursor,
	// DueAt, ClaimedUntil, Attempts, LastError and LastAttemptAt that it returns.
	UpdatePush(ctx context.Context, org, uid, id string, decide func(p Push, clock time.Time) (Push, error)) (Push, error)
	// DeletePush deletes a push configuration, if it is there.
	DeletePush(ctx context.Context, org, uid, id string) error
	// ClaimPushes takes what is due; nobody else gets it until the claim is over.
	ClaimPushes(ctx context.Context, c PushClaim) ([]Push, error)
	// CountPushes counts the push configurations that are due and those that are dead.
	CountPushes(ctx context.Context) (due, dead int64, err error)

	// CountLiveTasks counts a sender's tasks that are not over, up to most.
	CountLiveTasks(ctx context.Context, sender identity.Principal, most int64) (int64, error)
	// CountTasks counts the tasks of an org's agents, up to most.
	CountTasks(ctx context.Context, org string, most int64) (int64, error)
	// CountSenderPushes counts the active push configurations of a sender, or of all
	// senders of an org if only that is given, up to most.
	CountSenderPushes(ctx context.Context, sender identity.Principal, most int64) (int64, error)

	// SeeWorker records that a worker is alive. limit, if not 0, is how many an agent may
	// have: a new one is refused with TooManyWorkers, unless others are silent for long,
	// which are forgotten then.
	SeeWorker(ctx context.Context, w Worker, limit int) error
	// Workers lists the workers of an agent that were seen last, up to most.
	Workers(ctx context.Context, org, agent string, most int) ([]Worker, error)
	// LastSeen tells of each of these agents when a worker of it was seen last. Agents without
	// workers are left out.
	LastSeen(ctx context.Context, org string, agents []string) (map[string]time.Time, error)
	// Keys lists the keys of an org, as identity.Store does.
	Keys(ctx context.Context, org string, f identity.KeyFilter) ([]identity.Key, error)
	// ForgetWorker records that a worker has gone.
	ForgetWorker(ctx context.Context, w Worker) error
	// Loads tells the load of all agents; workers not seen since are not counted. Agents
	// without either are left out.
	Loads(ctx context.Context, since time.Time) (map[AgentKey]Load, error)

	// PutMessage keeps a direct message, unless one of its shares of the mailbox is full.
	PutMessage(ctx context.Context, m DirectMessage, b Mailbox) error
	// Messages returns waiting direct messages, oldest first, within the bounds of the
	// batch.
	Messages(ctx context.Context, org, agent string, b Batch) ([]DirectMessage, error)
	// AckMessages deletes delivered ones.
	AckMessages(ctx context.Context, org, agent string, ids []string) error
	// SweepMessages deletes messages older than the given time.
	SweepMessages(ctx context.Context, before time.Time, most int) (int, error)
}

// ErrChanged says that a row is no longer the one that a change was decided on.
var ErrChanged = errs.New(errs.Conflict, "task.changed", "the task has changed meanwhile")

// Ref names a task inside the store.
type Ref struct{ Org, UID string }
