package rest

import (
	stdjson "encoding/json"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

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
