package rest

import (
	stdjson "encoding/json"

	"github.com/parley-dev/parley/internal/webhook"
)

// Webhook encodes a webhook, without its secrets.
func (Records) Webhook(w *webhook.Webhook) stdjson.RawMessage {
	return encodeRecord(map[string]any{"id": w.ID, "state": w.State, "description": w.Description})
}
