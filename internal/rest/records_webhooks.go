package rest

import (
	stdjson "encoding/json"

	"github.com/parley-dev/parley/internal/webhook"
)

// Webhook encodes a webhook, without its secret. The URL has neither path nor query: those of chat
// services are secrets, and other receivers get the event.
func (Records) Webhook(h *webhook.Webhook) stdjson.RawMessage {
	record := webhookOf(h)
	record.URL = h.Receiver()
	return encodeRecord(record)
}
