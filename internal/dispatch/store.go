package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// Stores are the stores of the package, one interface per concern.
type Stores struct {
	Read    TaskReader
	Write   TaskWriter
	Queue   Queue
	Log     stream.Log
	Stock   Stock
	Workers WorkerStore
	Mailbox Mailbox
	Pushes  PushStore
	Keys    KeyStore
	Usage   UsageReader
}

// Decision decides what to write. The task is locked until the change is written. A Decision
// may run more than once and must be pure.
type Decision = func(task.Current) (task.Change, error)

// TaskWriter changes tasks. It writes the row and its new events atomically.
type TaskWriter interface {
	// Insert writes a new task and its first events. If the key is taken, the error code is
	// errs.CodeExists. lease, if not zero, is the length of the task's lease, measured by the
	// store's clock.
	Insert(ctx context.Context, c task.Change, lease time.Duration) error
	// InsertOnce is like Insert, for a command with an idempotency key in its context. If the
	// command was carried out before, it writes nothing and returns *Inserted.
	InsertOnce(ctx context.Context, c task.Change, lease time.Duration) error
	// Update locks a task, runs decide and writes the change. bytes is an estimate of the
	// text that decide handles: a store with a single writer need not run a large decision in
	// it.
	Update(ctx context.Context, org, uid string, bytes int64, decide Decision) (task.Change, error)
	// UpdateOnce is like Update, for a command with an idempotency key in its context. It
	// stores Change.Reported. If the command was carried out before, it returns a change that
	// has only the stored Reported.
	UpdateOnce(ctx context.Context, org, uid string, bytes int64, decide Decision) (task.Change, error)
	// UpdateByKey is like Update, by the sender's key of the task.
	UpdateByKey(ctx context.Context, k task.Key, bytes int64, decide Decision) (task.Change, error)
	// Finish writes a change that ends a lease and was decided on a known row. If the row has
	// changed or the lease has expired, it writes nothing and returns ErrChanged.
	Finish(ctx context.Context, known task.Task, c task.Change) error
}

// Inserted is the error of InsertOnce for a command that was carried out before: it has the uid of
// the task that was written then.
type Inserted struct{ UID string }

// Error implements error.
func (e *Inserted) Error() string { return "the task was sent before as " + e.UID }

// ErrChanged means that the row has changed since the decision.
var ErrChanged = errs.New(errs.Conflict, "task.changed", "the task has changed meanwhile")

// TaskReader reads tasks.
type TaskReader interface {
	// ByKey and ByUID return a task with the given content.
	ByKey(ctx context.Context, k task.Key, l task.Content) (task.Task, error)
	ByUID(ctx context.Context, org, uid string, l task.Content) (task.Task, error)
	// Taken reports whether Insert should not be tried, because the sender has a task with the key. A
	// store that refuses an insert at little cost always returns false.
	Taken(ctx context.Context, k task.Key) bool
	// Row returns a task without messages and artifacts.
	Row(ctx context.Context, org, uid string) (task.Task, error)
	// Artifact returns one artifact by its index in Task.Artifacts. It reads no more of the
	// other artifacts than it takes to find it. It calls admit with an estimate of the size
	// before it reads the artifact, and returns its error.
	Artifact(ctx context.Context, org, uid string, number int, admit func(bytes int64) error) (task.Artifact, error)
	// List lists tasks without messages and artifacts, newest first.
	List(ctx context.Context, f Filter) ([]task.Task, error)
	// Search lists tasks without messages and artifacts, newest first. It reads no more than
	// MaxSearched tasks.
	Search(ctx context.Context, q Search) (Found, error)
	// Failed lists the newest failed and rejected tasks of an agent with their status, which is
	// omitted if it is large.
	Failed(ctx context.Context, org, agent string, most int) ([]task.Task, error)
	// Timeline returns the latest events of a task that start or end a lease, in order, and between
	// them one event without content for each message of the sender and each other write of a
	// worker. It reads up to most rows of the log, and a limited number of bytes; cut means that
	// earlier rows were not read.
	Timeline(ctx context.Context, t task.Task, most int) (events []task.Event, cut bool, err error)
	// Own lists tasks of one sender with one agent, the most recently changed first. They
	// have their status, but neither history nor artifacts. The total ignores Before and
	// Limit.
	Own(ctx context.Context, f OwnFilter) (OwnRows, error)
}

// Queue has the tasks that wait for a worker, and those that are leased.
type Queue interface {
	// Claim runs decide on waiting tasks of an agent, oldest first, within the batch. No two
	// claims get the same task. Small tasks have their history.
	Claim(ctx context.Context, org, agent string, b Batch, decide Decision) ([]task.Change, error)
	// Exchange runs the updates of tasks of an org, and then claims like Claim, with as few
	// transactions as possible. It sets Change and Err of each update; a refused update does not
	// affect the others. The error is that of the claim.
	Exchange(
		ctx context.Context, org, agent string, updates []Update, b Batch, claim Decision,
	) ([]task.Change, error)
	// Expire runs decide on up to most tasks whose lease has expired.
	Expire(ctx context.Context, most int, decide Decision) ([]task.Change, error)
	// Wake runs decide on up to most tasks whose Task.WakeAt has come.
	Wake(ctx context.Context, most int, decide Decision) ([]task.Change, error)
	// LeasesOf runs decide on up to most tasks that are leased to workers whose names have
	// the prefix.
	LeasesOf(ctx context.Context, workerPrefix string, most int, decide Decision) ([]task.Change, error)
}

// Update is one of several updates of tasks; see TaskWriter.Update.
type Update struct {
	UID    string
	Bytes  int64
	Decide Decision
	Change task.Change
	Err    error
}

// Batch limits how much is read at once. The first item is always included.
type Batch struct {
	Most  int
	Bytes int64
}

// Stock counts tasks and deletes old ones.
type Stock interface {
	// CountLive counts a sender's tasks that have not ended, up to most.
	CountLive(ctx context.Context, sender identity.Principal, most int64) (int64, error)
	// Count counts the tasks of an org's agents, up to most.
	Count(ctx context.Context, org string, most int64) (int64, error)
	// Asking returns up to most tasks that wait for an answer of a sender, or of any sender of an
	// org if only the org is given, without messages and artifacts.
	Asking(ctx context.Context, sender identity.Principal, most int) ([]task.Task, error)
	// Queued returns the agents of an org with waiting tasks, by id. It counts up to MaxUnattended tasks
	// of each of the first most agents.
	Queued(ctx context.Context, org string, most int) ([]QueuedAgent, error)
	// Sweep deletes up to most tasks that ended before the given time.
	Sweep(ctx context.Context, endedBefore time.Time, most int) (int, error)
}

// WorkerStore keeps when workers were last seen.
type WorkerStore interface {
	// See records that a worker is alive, and that its agent is online. limit, if not 0, is the
	// number of workers that an agent may have. Beyond it, a new worker replaces one that has
	// not been seen for ForgetWorkers, or else is refused with TooManyWorkers.
	See(ctx context.Context, w Worker, limit int) error
	// SeeAgain is See for a worker that was seen within GoneAfter: its agent is online.
	SeeAgain(ctx context.Context, w Worker) error
	// Forget records that a worker has gone.
	Forget(ctx context.Context, w Worker) error
	// UpdatePresences records which agents went online or offline: those with a worker that was
	// seen within GoneAfter, and those without one and without a lease. It handles a limited
	// number of agents and returns how many.
	UpdatePresences(ctx context.Context, at time.Time) (int, error)
	// List lists up to most workers of an agent, the last seen first.
	List(ctx context.Context, org, agent string, most int) ([]Worker, error)
	// LastSeen returns for each agent when a worker was last seen. Agents without workers are
	// omitted.
	LastSeen(ctx context.Context, org string, agents []string) (map[string]time.Time, error)
	// Crews returns for each agent how many workers were seen since the given time, when one
	// was last seen, and how many tasks wait, up to most. Agents without any are omitted.
	Crews(ctx context.Context, org string, agents []string, since time.Time, most int) (map[string]Crew, error)
	// Loads returns the load of all agents. Workers that were not seen since the given time
	// are not counted. Agents without workers and leases are omitted.
	Loads(ctx context.Context, since time.Time) (map[task.AgentKey]Load, error)
}

// Mailbox keeps direct messages.
type Mailbox interface {
	// Put stores a message, unless one of its shares of the mailbox is full.
	Put(ctx context.Context, m DirectMessage, l MailboxLimits) error
	// List returns waiting messages within the batch, oldest first.
	List(ctx context.Context, org, agent string, b Batch) ([]DirectMessage, error)
	// Ack deletes delivered messages.
	Ack(ctx context.Context, org, agent string, ids []string) error
	// Sweep deletes messages older than the given time.
	Sweep(ctx context.Context, before time.Time, most int) (int, error)
}

// PushStore keeps push configurations. TaskWriter sets them, with their task.
type PushStore interface {
	// OfTask lists the configurations of a task, ordered by id. The list is never nil.
	OfTask(ctx context.Context, org, uid string) ([]Push, error)
	// List lists the configurations of an org's agents, newest task first.
	List(ctx context.Context, f PushFilter) ([]Push, error)
	// Delete deletes a configuration, if it exists.
	Delete(ctx context.Context, org, uid, id string) error
	// CountActive counts the active configurations of a sender, or of all senders of an org
	// if only the org is given, up to most.
	CountActive(ctx context.Context, sender identity.Principal, most int64) (int64, error)
}

// KeyStore finds keys that may work for an agent.
type KeyStore interface {
	// Keys lists the keys of an org; see identity.KeyStore.
	Keys(ctx context.Context, org string, f identity.KeyFilter) ([]identity.Key, error)
}

// UsageReader reads what orgs have used of the quotas of agents. TaskWriter.Insert counts it.
type UsageReader interface {
	// Used returns what an org has used. It is zero if the org never called the agent.
	Used(ctx context.Context, key task.AgentKey, caller string) (agent.Counted, error)
}
