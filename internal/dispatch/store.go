package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// Stores are where everything is kept, by concern.
type Stores struct {
	Read       TaskReader
	Write      TaskWriter
	Queue      Queue
	Log        stream.Log
	Stock      Stock
	Workers    WorkerStore
	Mailbox    Mailbox
	Pushes     PushStore
	Deliveries delivery.Store // of what Pushes keeps
	Keys       KeyStore
}

// Decision decides what to write, on a task that is locked until it is written. It may be
// run more than once, and must be pure.
type Decision = func(task.Current) (task.Change, error)

// TaskWriter changes tasks: a row and the events that lead to it, all or nothing.
type TaskWriter interface {
	// Insert writes a new task and its first events. A taken key is errs.CodeExists and
	// nothing is written. lease, if not zero, is how long the task's lease lasts,
	// measured by the store's clock.
	Insert(ctx context.Context, c task.Change, lease time.Duration) error
	// Update locks a task, runs decide and writes what it returns. bytes is about how
	// much text it handles: a store with one writer need not run a large decision there.
	Update(ctx context.Context, org, uid string, bytes int64, decide Decision) (task.Change, error)
	// UpdateOnce is Update for a command with an idempotency key in its context:
	// Reported of the change is kept. If the command was carried out before, the change
	// that is returned has nothing but Reported, of the first time.
	UpdateOnce(ctx context.Context, org, uid string, bytes int64, decide Decision) (task.Change, error)
	// UpdateByKey is Update for the sender's own name of the task.
	UpdateByKey(ctx context.Context, k task.Key, bytes int64, decide Decision) (task.Change, error)
	// Finish writes a change that ends a lease and was decided on a known row, if
	// the row is still that one under a live lease; else it writes nothing and
	// returns ErrChanged.
	Finish(ctx context.Context, known task.Task, c task.Change) error
}

// ErrChanged says that a row is no longer the one that a change was decided on.
var ErrChanged = errs.New(errs.Conflict, "task.changed", "the task has changed meanwhile")

// TaskReader reads tasks.
type TaskReader interface {
	// ByKey and ByUID return the task with as much of its log folded in as was asked for.
	ByKey(ctx context.Context, k task.Key, l task.Content) (task.Task, error)
	ByUID(ctx context.Context, org, uid string, l task.Content) (task.Task, error)
	// Row returns a task without messages and artifacts.
	Row(ctx context.Context, org, uid string) (task.Task, error)
	// Artifact returns one artifact of a task, by its number in Task.Artifacts, and reads
	// no more of the others than it takes to find it. admit is asked with about how many bytes it
	// has before it is read; its error ends the read.
	Artifact(ctx context.Context, org, uid string, number int, admit func(bytes int64) error) (task.Artifact, error)
	// List lists rows, newest first, without messages and artifacts.
	List(ctx context.Context, f Filter) ([]task.Task, error)
	// Own lists tasks of one sender with one agent, the one that changed last first, with
	// their status but neither history nor artifacts. It counts all that match, whatever
	// Before and Limit say.
	Own(ctx context.Context, f OwnFilter) (OwnRows, error)
}

// Queue has the tasks that wait for a worker, and those that one holds.
type Queue interface {
	// Claim runs decide on waiting tasks of an agent, oldest first, within the bounds of
	// the batch; no two claims get the same task.
	Claim(ctx context.Context, org, agent string, b Batch, decide Decision) ([]task.Change, error)
	// Expire runs decide on up to most tasks whose lease has run out.
	Expire(ctx context.Context, most int, decide Decision) ([]task.Change, error)
	// LeasesOf runs decide on up to most tasks whose lease is held by a worker with
	// the given prefix of its name.
	LeasesOf(ctx context.Context, workerPrefix string, most int, decide Decision) ([]task.Change, error)
}

// Batch bounds how much is read at once: the first item is always part of it.
type Batch struct {
	Most  int
	Bytes int64
}

// Stock says how many tasks there are, and deletes old ones.
type Stock interface {
	// CountLive counts a sender's tasks that are not over, up to most.
	CountLive(ctx context.Context, sender identity.Principal, most int64) (int64, error)
	// Count counts the tasks of an org's agents, up to most.
	Count(ctx context.Context, org string, most int64) (int64, error)
	// Sweep deletes up to most tasks that ended before the given time.
	Sweep(ctx context.Context, endedBefore time.Time, most int) (int, error)
}

// WorkerStore keeps what is known of workers.
type WorkerStore interface {
	// See records that a worker is alive. limit, if not 0, is how many an agent may have: a
	// new one is refused with TooManyWorkers, unless others are silent for long, which are
	// forgotten then.
	See(ctx context.Context, w Worker, limit int) error
	// Forget records that a worker has gone.
	Forget(ctx context.Context, w Worker) error
	// List lists the workers of an agent that were seen last, up to most.
	List(ctx context.Context, org, agent string, most int) ([]Worker, error)
	// LastSeen tells of each of these agents when a worker of it was seen last. Agents without
	// workers are left out.
	LastSeen(ctx context.Context, org string, agents []string) (map[string]time.Time, error)
	// Loads tells the load of all agents; workers not seen since are not counted. Agents
	// without either are left out.
	Loads(ctx context.Context, since time.Time) (map[task.AgentKey]Load, error)
}

// Mailbox keeps direct messages.
type Mailbox interface {
	// Put keeps a direct message, unless one of its shares of the mailbox is full.
	Put(ctx context.Context, m DirectMessage, l MailboxLimits) error
	// List returns waiting direct messages, oldest first, within the bounds of the batch.
	List(ctx context.Context, org, agent string, b Batch) ([]DirectMessage, error)
	// Ack deletes delivered ones.
	Ack(ctx context.Context, org, agent string, ids []string) error
	// Sweep deletes messages older than the given time.
	Sweep(ctx context.Context, before time.Time, most int) (int, error)
}

// PushStore keeps push configurations. They are set by TaskWriter, with their task.
type PushStore interface {
	// OfTask lists the push configurations of a task, ordered by id; never nil.
	OfTask(ctx context.Context, org, uid string) ([]Push, error)
	// List lists the push configurations of an org, newest task first.
	List(ctx context.Context, f PushFilter) ([]Push, error)
	// Delete deletes a push configuration, if it is there.
	Delete(ctx context.Context, org, uid, id string) error
	// CountActive counts the active push configurations of a sender, or of all senders of
	// an org if only that is given, up to most.
	CountActive(ctx context.Context, sender identity.Principal, most int64) (int64, error)
}

// KeyStore finds the keys that could work for an agent.
type KeyStore interface {
	// Keys lists the keys of an org, as identity.Store does.
	Keys(ctx context.Context, org string, f identity.KeyFilter) ([]identity.Key, error)
}
