package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

type webhookPingCmd struct {
	oneWebhook `embed:""`
}

// Help is shown by --help.
func (webhookPingCmd) Help() string {
	return "Sends one event of the type webhook.ping now, also if the webhook is paused, and prints the outcome. The " +
		"exit code is 1 if it was not delivered. " + needsAdmin +
		examples("parley webhook ping hook-01k…", "parley webhook ping hook-01k… --json | jq .status")
}

func (c *webhookPingCmd) Run(e *env) error {
	d, done, err := ask(e, &c.serverFlags, c.about(),
		func(api *client.Client, raw client.Option) (*client.WebhookDelivery, error) {
			return api.Webhooks.Ping(e.ctx, c.ID, raw)
		})
	if err != nil {
		return err
	}
	return e.delivered(d, c.ID, done)
}

// delivered prints the outcome of a delivery, unless --json has, and returns an error if it failed.
func (e *env) delivered(d *client.WebhookDelivery, webhook string, printed bool) error {
	if d.Outcome != "delivered" {
		response := ""
		if d.Response != "" {
			response = fmt.Sprintf("; it responded: %s", cleanLine(d.Response))
		}
		return fmt.Errorf("event %q was not delivered to webhook %q after %d ms: %s%s", d.EventID, webhook, d.LatencyMS,
			cmp.Or(d.Error, d.Outcome), response)
	}
	if printed {
		return nil
	}
	return e.say("delivered event %q (%s) to webhook %q in %d ms; the receiver responded with %d",
		d.EventID, d.Type, webhook, d.LatencyMS, d.Status)
}

type webhookDeliveriesCmd struct {
	oneWebhook `embed:""`
	wideFlag   `embed:""`
	Limit      *int `help:"How many, at most 100." placeholder:"N"`
}

// Help is shown by --help.
func (webhookDeliveriesCmd) Help() string {
	return "Each attempt, newest first. The last 100 are kept. " + needsAdmin + examples(
		"parley webhook deliveries hook-01k…",
		"parley webhook deliveries hook-01k… --limit 100 --json | jq '.deliveries[] | select(.outcome != \"delivered\")'",
	)
}

func (c *webhookDeliveriesCmd) Run(e *env) error {
	query := map[string][]string{}
	set(query, "limit", c.Limit)
	list, done, err := ask(e, &c.serverFlags, c.about(),
		func(api *client.Client, raw client.Option) ([]client.WebhookDelivery, error) {
			return api.Webhooks.Deliveries(e.ctx, c.ID, client.WebhookDeliveryParams{}, client.WithQuery(query), raw)
		})
	if done {
		return err
	}
	t := table{
		head:   []string{"AT (UTC)", "EVENT", "TYPE", "OUTCOME", "STATUS", "MS", "TRY", "RESPONSE"},
		colour: map[int]func(string) string{3: e.palette().status},
		drop:   []string{"MS", "TRY", "TYPE"},
		wide:   c.Wide,
	}
	for _, d := range list {
		status := "-"
		if d.Status > 0 {
			status = strconv.Itoa(d.Status)
		}
		try := strconv.Itoa(d.Attempt)
		if d.Redelivery {
			try = "again"
		}
		response := d.Response
		if d.Status == 0 {
			response = d.Error
		}
		t.add(d.At.UTC().Format("2006-01-02 15:04:05"), d.EventID, d.Type, d.Outcome, status,
			strconv.FormatInt(d.LatencyMS, 10), try, orNone(response))
	}
	return e.pages(&t, "no deliveries", "")
}

type webhookRedeliverCmd struct {
	oneWebhook `embed:""`
	Event      string    `arg:"" optional:"" help:"Id of the event, evt-…, which webhook deliveries shows; sent now."`
	Since      time.Time `help:"Instead of EVENT: continue with the first event at this time or later, e.g. 2026-03-02T10:00:00Z." placeholder:"TIME"`
}

// Help is shown by --help.
func (webhookRedeliverCmd) Help() string {
	return "Receivers get the same ids again, by which they can drop repeats. With EVENT, the exit code is 1 if it was " +
		"not delivered. " + needsAdmin + examples(
		"parley webhook redeliver hook-01k… evt-4fgh2kq7ab3d5m2xwz7r6yslt4",
		"parley webhook redeliver hook-01k… --since 2026-03-02T10:00:00Z",
	)
}

func (c *webhookRedeliverCmd) Run(e *env) error {
	if (c.Event == "") == c.Since.IsZero() {
		return usage("give either the id of an event or --since")
	}
	what := client.WebhookRedelivery{EventID: c.Event}
	if c.Event == "" {
		what.Since = &c.Since
	}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	out, done, err := askAt(e, r, c.JSON, c.about(),
		func(api *client.Client, raw client.Option) (*client.WebhookRedelivered, error) {
			return api.Webhooks.Redeliver(e.ctx, c.ID, what, raw)
		})
	switch {
	case err != nil:
		var refused *refusal
		if errors.As(err, &refused) && refused.cause.Code == "webhook.no_event" {
			refused.says = refused.cause.Detail // the webhook exists
		}
		return err
	case out.Delivery != nil:
		return e.delivered(out.Delivery, c.ID, done)
	case done:
		return nil
	}
	return e.say("webhook %q continues after event %d %s; %d events are pending",
		out.Webhook.ID, out.Webhook.LastSeq, r.in(e), out.Webhook.Pending)
}
