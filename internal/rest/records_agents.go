package rest

import (
	stdjson "encoding/json"

	"github.com/parley-dev/parley/internal/agent"
)

// Agent encodes an agent with its profile. Its last_seen_at is null, as for all readers who are
// not admins.
func (Records) Agent(a *agent.Agent, status string) stdjson.RawMessage {
	out := agentOf(a)
	out.Status = status
	out.addProfile(a)
	return encodeRecord(out)
}
