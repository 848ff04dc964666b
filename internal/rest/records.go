package rest

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// Records encodes records as this API shows them, for the data of events. It omits what depends
// on the reader.
type Records struct{}

func encodeRecord(v any) stdjson.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // these types can always be encoded
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}

// Proposal encodes a proposal.
func (Records) Proposal(p *proposal.Proposal) stdjson.RawMessage {
	return encodeRecord(recordOf(p, nil))
}

// Followup encodes a follow-up.
func (Records) Followup(f *followup.Followup) stdjson.RawMessage { return encodeRecord(followupOf(f)) }

// Friction encodes reported friction.
func (Records) Friction(f *friction.Friction) stdjson.RawMessage { return encodeRecord(frictionOf(f)) }

// Task encodes a task, without its messages.
func (Records) Task(t *task.Task) stdjson.RawMessage { return encodeRecord(orgTaskOf(t)) }
