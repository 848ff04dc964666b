package a2a

import (
	"time"

	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// appendTask appends a task with as much of its history as was asked for;
// negative: none, not even an empty one.
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

// eventsOf encodes the events of a task. A stream ends when the task does, and
// when the agent waits for an answer; but a pause that was over when the stream
// began, known by the number of the newest event then, ends nothing.
func eventsOf(id string, known int64) func([]byte, *task.Event) ([]byte, bool, bool) {
	return func(b []byte, e *task.Event) (_ []byte, show, last bool) {
		if e.Kind == task.TurnEvent {
			return b, false, false // the sender knows what it said
		}
		b = append(b, `{"id":`...)
		b = wire.AppendString(b, id)
		if e.Kind == task.ArtifactEvent {
			b = append(b, `,"artifact":`...)
			b = wire.AppendArtifactUpdate(b, e.Artifact, e.Append, e.LastChunk)
			return append(b, '}'), true, false
		}
		last = e.State.Terminal() || e.State == task.InputRequired && e.Seq >= known
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

// idle is how often a silent stream looks around.
func (s *server) idle() time.Duration { return min(s.Recheck, s.KeepAlive) }
