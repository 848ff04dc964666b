package a2a

import (
	"time"

	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// appendTask appends a task with the given number of messages of its history; negative: without the
// member history.
func appendTask(b []byte, t *task.Task, history int) []byte {
	b = append(b, `{"id":`...)
	b = wire.AppendString(b, t.ID)
	b = append(b, `,"kind":"task","contextId":`...)
	b = wire.AppendString(b, t.ContextID)
	b = append(b, `,"status":`...)
	b = appendStatus(b, t.State, t.UpdatedAt, t.Message)
	if len(t.Artifacts) > 0 {
		b = append(b, `,"artifacts":`...)
		b = wire.AppendArtifacts(b, t.Artifacts)
	}
	if history >= 0 {
		b = append(b, `,"history":`...)
		b = wire.AppendMessages(b, t.History[max(0, len(t.History)-history):])
	}
	b = wire.AppendMetadata(b, t.Metadata)
	return append(b, '}')
}

func appendStatus(b []byte, s task.State, at time.Time, m *task.Message) []byte {
	b = append(b, `{"state":"`...)
	b = append(b, s...)
	b = append(b, `","timestamp":`...)
	b = wire.AppendTime(b, at)
	if m != nil {
		b = append(b, `,"message":`...)
		b = wire.AppendMessage(b, m)
	}
	return append(b, '}')
}

// eventsOf encodes the events of a task. A stream ends when the task ends or waits for input. A
// pause that was over when the stream began (its event is older than the newest event at that time)
// does not end the stream.
//
// The events also have the members of version 0.3 of the official protocol, since tasks/resubscribe
// is a method of both.
func eventsOf(t *task.Task) func([]byte, *task.Event) ([]byte, bool, bool) {
	id, context, known := t.ID, t.ContextID, t.Seq
	return func(b []byte, e *task.Event) (_ []byte, show, last bool) {
		b = append(b, `{"id":`...)
		b = wire.AppendString(b, id)
		if e.Kind == task.ArtifactEvent {
			b = appendKind(b, "artifact-update", id, context)
			b = append(b, `,"artifact":`...)
			b = wire.AppendArtifactUpdate(b, e.Artifact, e.Append, e.LastChunk)
			b = wire.AppendChunk(b, e)
			return append(b, '}'), true, false
		}
		last = e.State.Terminal() || e.State.Interrupted() && e.Seq >= known
		b = appendKind(b, "status-update", id, context)
		b = append(b, `,"status":`...)
		b = appendStatus(b, e.State, e.At, e.Message)
		if last {
			b = append(b, `,"final":true}`...)
		} else {
			b = append(b, `,"final":false}`...)
		}
		return b, true, last
	}
}

func appendKind(b []byte, kind, id, context string) []byte {
	b = append(b, `,"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","taskId":`...)
	b = wire.AppendString(b, id)
	b = append(b, `,"contextId":`...)
	return wire.AppendString(b, context)
}

// idle is how often a silent stream wakes up.
func (s *server) idle() time.Duration { return min(s.Recheck, s.KeepAlive) }
