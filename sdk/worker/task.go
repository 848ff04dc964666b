package worker

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// Task is a task that this worker has a lease for. Its methods may be called from several
// goroutines; reports arrive in the order of the calls.
type Task struct {
	ID        string // the platform's id; the same for every attempt
	ContextID string // groups tasks of the sender
	Sender    Sender
	Attempt   int       // from 1; more than 1 if an earlier worker was lost or failed
	Message   Message   // the latest message of the sender
	History   []Message // the whole conversation, oldest first, including Message

	// MaxAttempts is how often the task is tried. After a failure in the last attempt it is over.
	MaxAttempts int
	// Deadline is when the task fails and its lease ends; zero: never. The context of the handler ends
	// then, with the cause ErrOverdue.
	Deadline time.Time

	SenderTaskID        string          // the sender's id of the task
	Metadata            json.RawMessage // of the sender's latest request that had any; nil: none
	AcceptedOutputModes []string        // media types that the sender accepts; empty: unknown
	// Trace is the trace that the task belongs to, also client.TraceOf the handler's context. See
	// "Traces" in the package documentation.
	Trace client.Trace

	hold *hold
	done <-chan struct{}

	listen sync.Once
	heard  chan Message

	mu     sync.Mutex
	chunks map[string][]Part // of growing artifacts, by id
}

// Text returns the text of the sender's latest message.
func (t *Task) Text() string { return t.Message.Text() }

// Replied reports whether the sender has sent a further message after the first one, such as the
// reply to a question. The history also has messages of the agent, and of the platform about
// lost workers, so its length does not tell.
func (t *Task) Replied() bool {
	n := 0
	for i := range t.History {
		if t.History[i].Role == client.RoleUser {
			n++
		}
	}
	return n > 1
}

func saying(text string) *Message {
	text = strings.ReplaceAll(text, "\x00", "") // the server refuses NUL
	return &Message{Parts: []Part{Text(text)}}
}

// Agent returns a client for another agent, of this agent's org or a public one. The server knows its
// calls as part of this task, and refuses those that go too deep: agents that call each other in a
// loop come to an end. The key needs the scope svc:a2a:write.
func (t *Task) Agent(id string) *client.AgentClient { return t.hold.api.Agent(id).During(t.ID) }

// Send sends a task to another agent as part of this one; see Agent.
func (t *Task) Send(ctx context.Context, agent string, p client.SendParams) (*client.Task, error) {
	return t.Agent(agent).Send(ctx, p)
}

// Progress reports progress to the sender.
func (t *Task) Progress(ctx context.Context, text string) error {
	return t.hold.report(ctx, false, func(bool) client.WorkReport {
		return client.WorkReport{Status: client.TaskWorking, Message: saying(text)}
	})
}

// Artifact delivers an output. It replaces an earlier one with the same id.
func (t *Task) Artifact(ctx context.Context, a Artifact) error {
	t.mu.Lock()
	delete(t.chunks, a.ID)
	t.mu.Unlock()
	return t.hold.report(ctx, false, func(bool) client.WorkReport {
		return client.WorkReport{Artifacts: []client.WorkerArtifact{a.update(false)}}
	})
}

// AppendArtifact delivers a further chunk of an output, which needs an id: the parts are added to
// those of earlier calls in this run of the handler. The first chunk restarts the artifact, so that
// a second attempt does not continue the text of a lost one.
func (t *Task) AppendArtifact(ctx context.Context, a Artifact) error {
	t.mu.Lock()
	earlier, grows := t.chunks[a.ID]
	if t.chunks == nil {
		t.chunks = map[string][]Part{}
	}
	t.chunks[a.ID] = append(earlier, a.Parts...)
	t.mu.Unlock()
	return t.hold.report(ctx, false, func(unsure bool) client.WorkReport {
		u := a.update(grows)
		if unsure && grows {
			// Appending again could duplicate the chunk; send the whole artifact instead.
			u.Append, u.Parts = false, append(earlier[:len(earlier):len(earlier)], a.Parts...)
		}
		return client.WorkReport{Artifacts: []client.WorkerArtifact{u}}
	})
}

func (a *Artifact) update(grows bool) client.WorkerArtifact {
	u := client.WorkerArtifact{
		ID: a.ID, Type: a.Type, Name: a.Name, Parts: a.Parts, Append: grows, LastChunk: a.LastChunk,
	}
	if u.Type == "" {
		u.Type = "text"
	}
	return u
}

// Complete completes the task. The parts, if any, become its last artifact.
func (t *Task) Complete(ctx context.Context, parts ...Part) error {
	return t.hold.report(ctx, true, func(bool) client.WorkReport {
		r := client.WorkReport{Status: client.TaskCompleted}
		if len(parts) > 0 {
			r.Artifacts = []client.WorkerArtifact{{Type: "text", Parts: parts, LastChunk: true}}
		}
		return r
	})
}

// Reply completes the task with a message as the whole result. A client of the official protocol
// that waits for the task gets the message instead of the task.
func (t *Task) Reply(ctx context.Context, parts ...Part) error {
	return t.hold.report(ctx, true, func(bool) client.WorkReport {
		return client.WorkReport{Status: client.TaskCompleted, Message: &Message{Parts: parts}, Reply: true}
	})
}

// Fail ends the task as failed.
func (t *Task) Fail(ctx context.Context, reason string) error {
	return t.finish(ctx, client.TaskFailed, reason)
}

// Reject ends the task as rejected: the agent does not do such tasks.
func (t *Task) Reject(ctx context.Context, reason string) error {
	return t.finish(ctx, client.TaskRejected, reason)
}

// AskForInput asks the sender for input and ends the lease; return after it. The handler is called
// again when the sender has sent the input.
func (t *Task) AskForInput(ctx context.Context, question string) error {
	return t.finish(ctx, client.TaskInputRequired, question)
}

// AskForAuth tells the sender which authorization the agent needs to continue. Like AskForInput it
// ends this run of the handler, which is called again when the sender has sent a message.
func (t *Task) AskForAuth(ctx context.Context, what string) error {
	return t.finish(ctx, client.TaskAuthRequired, what)
}

func (t *Task) finish(ctx context.Context, status client.TaskState, text string) error {
	return t.hold.report(ctx, true, func(bool) client.WorkReport {
		r := client.WorkReport{Status: status}
		if text != "" {
			r.Message = saying(text)
		}
		return r
	})
}

// Turns returns a channel of the sender's further messages while the handler runs. It is closed
// when the task is over or the handler's context ends, so check the second value of a receive.
func (t *Task) Turns() <-chan Message {
	t.listen.Do(func() {
		t.heard = make(chan Message)
		go func() {
			defer close(t.heard)
			for {
				m, ok := t.hold.turns.takeUntil(t.done)
				if !ok {
					return
				}
				select {
				case t.heard <- m:
				case <-t.done:
					return
				}
			}
		}()
	})
	return t.heard
}
