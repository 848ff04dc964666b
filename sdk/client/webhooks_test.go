package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	made := must(c.Webhooks.Create(ctx, client.WebhookCreation{
		URL: "https://fails.invalid/hook", Types: []string{"proposal.approved"}, Categories: []string{"security"},
		Description: "Test", State: client.WebhookPaused, Format: client.WebhookCloudEvents,
	}))
	if !strings.HasPrefix(made.Secret, "whsec_") || made.State != client.WebhookPaused || len(made.Types) != 1 {
		t.Errorf("webhook = %+v, want a paused one with a secret and a type", made)
	}
	if got := must(c.Webhooks.Get(ctx, made.ID)); got.Description != "Test" || got.Format != client.WebhookCloudEvents {
		t.Errorf("webhook = %+v, want what was created", got)
	}
	found := false
	for _, w := range must(c.Webhooks.List(ctx)) {
		found = found || w.ID == made.ID
	}
	if !found {
		t.Errorf("the list has no webhook %s", made.ID)
	}
	if got := must(c.Webhooks.Update(ctx, made.ID, client.WebhookPatch{Types: &[]string{}})); len(got.Types) != 0 ||
		len(got.Categories) != 1 {
		t.Errorf("webhook = %+v, want all types, and the category of before", got)
	}
	if got := must(c.Webhooks.Rotate(ctx, made.ID, client.KeyRotation{OverlapSeconds: 60})); got.Secret == made.Secret ||
		got.SecretOverlapUntil.Before(time.Now()) {
		t.Errorf("webhook = %+v, want another secret and an overlap", got)
	}

	ping := must(c.Webhooks.Ping(ctx, made.ID))
	if ping.Type != "webhook.ping" || ping.Outcome != "failed" || ping.Error == "" || ping.Seq != 0 {
		t.Errorf("ping = %+v, want one that failed", ping)
	}
	if got := must(c.Webhooks.Deliveries(ctx, made.ID, client.WebhookDeliveryParams{Limit: 1})); len(got) != 1 ||
		got[0].ID != ping.ID {
		t.Errorf("deliveries = %+v, want the ping", got)
	}
	since := time.Now().Add(-time.Hour)
	if got := must(c.Webhooks.Redeliver(ctx, made.ID, client.WebhookRedelivery{Since: &since})); got.Delivery != nil ||
		got.Webhook == nil || got.Webhook.ID != made.ID {
		t.Errorf("redelivery = %+v, want the webhook", got)
	}

	must(c.Webhooks.Delete(ctx, made.ID))
	var refused *client.Error
	if _, err := c.Webhooks.Get(ctx, made.ID); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("err = %v, want 404", err)
	}
}

// The server responds to a redelivery of one event with the delivery.
func TestARedeliveryIsADeliveryOrAWebhook(t *testing.T) {
	t.Parallel()
	var r client.WebhookRedelivered
	if err := r.UnmarshalJSON([]byte(`{"id":"dlv-1","event_id":"evt-1","seq":null,"status":204}`)); err != nil ||
		r.Webhook != nil || r.Delivery == nil || r.Delivery.Status != 204 {
		t.Errorf("got %+v, %v; want a delivery", r, err)
	}
	if err := r.UnmarshalJSON([]byte(`{"id":"hook-1","last_seq":7}`)); err != nil || r.Delivery != nil ||
		r.Webhook == nil || r.Webhook.LastSeq != 7 {
		t.Errorf("got %+v, %v; want a webhook", r, err)
	}
	if err := r.UnmarshalJSON([]byte(`[]`)); err == nil {
		t.Error("a list was accepted")
	}
}
