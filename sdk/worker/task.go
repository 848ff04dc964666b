package worker

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/parley-dev/parley/sdk/client"
)

// Task is a piece of work that this worker holds. Its methods may be called from
// several goroutines; reports arrive in the order of the calls.
type Task struct {
	ID        string    // the platform's own id; the same for every attempt
	ContextID string    // what the sender groups its tasks by
	Sender    Sender    // whose task it is
	Attempt   int       // from 1; more than 1 if an earlier worker got lost
	Message   Message   // the latest message of the sender
	History   []Message // the whole conversation, oldest first, Message included

	SenderTaskID        string          // the id under which the sender knows the task
	Metadata            json.RawMessage // of the sender's latest request that had any; nil: none had
	AcceptedOutputModes []string        // media types that the sender accepts; empty: it does not say

	hold *hold
	done <-chan struct{}

	listen sync.Once
	heard  chan Message

	mu     sync.Mutex
	chunks map[string][]Part // of growing artifacts, by id
}

// Text is the text of the sender's latest message.
func (t *Task) Text() string { return t.Message.Text() }

func saying(text string) *Message {
	text = strings.ReplaceAll(text, "\x00", "") // which the server does not take
	return &Message{Parts: []Part{Text(text)}}
}

// Progress tells the sender how the work is going.
func (t *Task) Progress(ctx context.Context, text string) error {
	return t.hold.report(ctx, false, func(bool) client.WorkReport {
		return client.WorkReport{Status: client.TaskWorking, Message: saying(text)}
	})
}

// Artifact delivers an output. One with the same id is replaced.
func (t *Task) Artifact(ctx context.Context, a Artifact) error {
	t.mu.Lock()
	delete(t.chunks, a.ID)
	t.mu.Unlock()
	return t.hold.report(ctx, false, func(bool) client.WorkReport {
		return client.WorkReport{Artifacts: []client.WorkerArtifact{a.update(false)}}
	})
}

// AppendArtifact delivers a further piece of an output, which needs an id: the parts
// are added to those of earlier calls in this run of the handler. The first piece
// starts the artifact anew, so that a second attempt does not continue the text of
// a lost one.
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
			// Adding the piece again could show it twice; the whole says what is meant.
			u.Append, u.Parts = false, append(earlier[:len(earlier):len(earlier)], a.Parts...)
		}
		return client.WorkReport{Artifacts: []client.WorkerArtifact{u}}
	})
}

func (a *Artifact) update(grows bool) client.WorkerArtifact {
	u := client.WorkerArtifact{ID: a.ID, Type: a.Type, Name: a.Name, Parts: a.Parts, Append: grows, LastChunk: a.LastChunk}
	if u.Type == "" {
		u.Type = "text"
	}
	return u
}

// Complete finishes the task. The parts, if there are any, become its last artifact.
func (t *Task) Complete(ctx context.Context, parts ...Part) error {
	return t.hold.report(ctx, true, func(bool) client.WorkReport {
		r := client.WorkReport{Status: client.TaskCompleted}
		if len(parts) > 0 {
			r.Artifacts = []client.WorkerArtifact{{Type: "text", Parts: parts, LastChunk: true}}
		}
		return r
	})
}

// Reply finishes the task with a message that is all there is to tell. A client of
// the official protocol that waits for the task gets the message instead of it.
func (t *Task) Reply(ctx context.Context, parts ...Part) error {
	return t.hold.report(ctx, true, func(bool) client.WorkReport {
		return client.WorkReport{Status: client.TaskCompleted, Message: &Message{Parts: parts}, Reply: true}
	})
}

// Fail ends the task as one that could not be done.
func (t *Task) Fail(ctx context.Context, reason string) error {
	return t.finish(ctx, client.TaskFailed, reason)
}

// Reject ends the task as one that the agent does not do.
func (t *Task) Reject(ctx context.Context, reason string) error {
	return t.finish(ctx, client.TaskRejected, reason)
}

// AskForInput asks the sender something and ends this run of the handler's hold on
// the task; return after it. The handler is called anew when the answer has come.
func (t *Task) AskForInput(ctx context.Context, question string) error {
	return t.finish(ctx, client.TaskInputRequired, question)
}

// AskForAuth tells the sender that the agent needs an authorization to go on, and what for.
// Like AskForInput it ends this run of the handler, which is called anew when the sender
// has answered.
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

// Turns is where further messages of the sender arrive while the handler runs. It
// is closed when the task is over or the handler's context ends, so look at the
// second value of a receive.
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
