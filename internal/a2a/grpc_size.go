package a2a

import (
	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// In protobuf every JSON value and every part is an object that is many times as large as its text,
// so gRPC counts them.

// valueSize is the approximate size of a google.protobuf.Value in memory.
const valueSize = 128

// takeValues takes memory for the JSON values of a task before it is encoded.
func (c *call) takeValues(t *task.Task) error {
	n := wire.Values(t.Metadata)
	if t.Message != nil {
		n += messageValues(t.Message)
	}
	for i := range t.History {
		n += messageValues(&t.History[i])
	}
	for i := range t.Artifacts {
		n += artifactValues(&t.Artifacts[i])
	}
	if n < manyValues {
		return nil
	}
	return budget.From(c).Take(c, n*valueSize)
}

// takeStored is takeValues for the response to a command that was carried out. If there is not enough
// memory, the content is omitted: an error would suggest that the command failed.
func (c *call) takeStored(t *task.Task) {
	if c.takeValues(t) == nil {
		return
	}
	t.History, t.Artifacts = nil, nil
	if c.takeValues(t) != nil {
		t.Message, t.Metadata = nil, nil
	}
}

// dropDecoded gives back the memory of the request's decoded fields, when they are not needed any
// more: if many requests held theirs while they wait for more, none could go on.
func (c *call) dropDecoded() {
	x := rpcOf(c)
	budget.From(c).Drop(x.decoded)
	x.decoded = 0
}

// manyValues is the number of values from which on they are counted in addition to their text.
const manyValues = 1000

func eventValues(e *task.Event) (n int64) {
	if e.Message != nil {
		n += messageValues(e.Message)
	}
	if e.Artifact != nil {
		n += artifactValues(e.Artifact)
	}
	return n
}

func messageValues(m *task.Message) int64 { return wire.Values(m.Metadata) + partValues(m.Parts) }

func artifactValues(a *task.Artifact) int64 { return wire.Values(a.Metadata) + partValues(a.Parts) }

func partValues(parts []task.Part) (n int64) {
	for i := range parts {
		n += wire.Values(parts[i].Data) + wire.Values(parts[i].Metadata)
	}
	return n
}
