package rest

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// Records encodes records as this API shows them, for the data of events. It omits what depends
// on the reader.
type Records struct{}

func encodeRecord(v any) stdjson.RawMessage {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true)) // like httpx.WriteJSON
	if err != nil {                                            // these types can always be encoded
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}

// Agent encodes an agent.
func (Records) Agent(a *agent.Agent) stdjson.RawMessage { return encodeRecord(agentOf(a)) }

// Member encodes a member.
func (Records) Member(m *identity.Member) stdjson.RawMessage { return encodeRecord(memberOf(m)) }

// Key encodes a key, without its secret.
func (Records) Key(k *identity.Key) stdjson.RawMessage { return encodeRecord(keyOf(k)) }

// Client encodes an OAuth client, without its secret.
func (Records) Client(c *oauth.Client) stdjson.RawMessage { return encodeRecord(clientOf(c)) }

// Invitation encodes an invitation, without its link.
func (Records) Invitation(i *identity.Invitation) stdjson.RawMessage {
	return encodeRecord(invitationOf(i))
}
