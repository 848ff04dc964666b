package cli

import (
	"fmt"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

type webhookCmd struct {
	Create     webhookCreateCmd     `cmd:"" help:"Create a webhook and print its id and its secret."`
	List       webhookListCmd       `cmd:"" help:"List the webhooks of your org."`
	Show       webhookShowCmd       `cmd:"" help:"Show one webhook and its progress."`
	Update     webhookUpdateCmd     `cmd:"" help:"Change the URL, the filters, the description or the format of a webhook."`
	Pause      webhookPauseCmd      `cmd:"" help:"Stop sending events to a webhook."`
	Resume     webhookResumeCmd     `cmd:"" help:"Continue where a paused or failed webhook stopped."`
	Rotate     webhookRotateCmd     `cmd:"" help:"Replace the secret of a webhook and print the new one."`
	Ping       webhookPingCmd       `cmd:"" help:"Send a test event to a webhook."`
	Deliveries webhookDeliveriesCmd `cmd:"" help:"List the last deliveries of a webhook."`
	Redeliver  webhookRedeliverCmd  `cmd:"" help:"Send one event, or all since a time, to a webhook again."`
	Delete     webhookDeleteCmd     `cmd:"" help:"Delete a webhook."`
}

// Help is shown by parley webhook --help.
func (webhookCmd) Help() string {
	return "A webhook is a URL to which the events of your org are sent, signed as Standard Webhooks. Each event is " +
		"sent at least once, in order. Drafts are not sent. " + needsAdmin + examples(
		"parley webhook create https://crm.example/hooks/parley --types proposal.approved,proposal.rejected",
		"parley webhook ping hook-01k…",
		"parley webhook list",
		"parley webhook deliveries hook-01k…",
		"parley webhook redeliver hook-01k… --since 2026-03-02T10:00:00Z",
		"SECRET=$(parley webhook rotate hook-01k… --overlap 1h)",
	)
}

// oneWebhook is embedded by the commands about one webhook.
type oneWebhook struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the webhook, hook-…, or a unique prefix of it."`
}

func (c *oneWebhook) about() subject { return about("webhook", &c.ID) }

// webhookFilters select the events that a webhook gets.
type webhookFilters struct {
	Types      []string `help:"Types of events to send, e.g. proposal.approved,task.failed; all if not given." aliases:"type" placeholder:"TYPE"`
	Categories []string `help:"Send events about proposals of these categories only." aliases:"category" placeholder:"CATEGORY"`
	Priorities []string `help:"Send events about proposals of these priorities only." aliases:"priority" placeholder:"PRIORITY"`
}

// orAll returns the values of a filter. "all" alone stands for no filter, which is an empty list.
func orAll(list []string) []string {
	if len(list) == 1 && list[0] == "all" {
		return []string{}
	}
	return list
}

type webhookCreateCmd struct {
	serverFlags    `embed:""`
	onceFlag       `embed:""`
	webhookFilters `embed:""`
	URL            string `arg:"" name:"url" help:"Where to send events; https."`
	Description    string `help:"What it is for, in one line." placeholder:"TEXT"`
	Format         string `help:"standard (default), cloudevents, or slack for incoming webhooks of chat services." placeholder:"FORMAT"`
	Paused         bool   `help:"Send nothing until webhook resume."`
}

// Help is shown by --help.
func (webhookCreateCmd) Help() string {
	return "It gets the events that happen from now on. Only its id goes to stdout, followed by the secret on a second " +
		"line; the rest goes to stderr. The secret verifies the signatures, and is shown once. " + needsAdmin + examples(
		"parley webhook create https://crm.example/hooks/parley",
		"parley webhook create https://crm.example/hooks/parley --types proposal.submitted --priorities high --json",
		"parley webhook create https://hooks.chat.example/T0/B0 --format slack --types proposal.approved",
	)
}

func (c *webhookCreateCmd) Run(e *env) error {
	creation := client.WebhookCreation{
		URL: c.URL, Types: orAll(c.Types), Categories: orAll(c.Categories), Priorities: orAll(c.Priorities),
		Description: c.Description, Format: client.WebhookFormat(c.Format),
	}
	if c.Paused {
		creation.State = client.WebhookPaused
	}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	made, done, err := askAt(e, r, c.JSON, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.WebhookWithSecret, error) {
			return api.Webhooks.Create(e.ctx, creation, c.once(), raw)
		})
	if done {
		return err
	}
	fmt.Fprintf(e.stderr, "created webhook %q %s; it is %s and gets %s; test it with %q\n", cleanLine(made.ID), r.in(e),
		cleanLine(string(made.State)), filtersOf(&made.Webhook), "parley webhook ping "+cleanLine(made.ID))
	_, err = e.stdout.Write([]byte(cleanLine(made.ID) + "\n" + cleanLine(made.Secret) + "\n"))
	return err
}

// filtersOf says which events a webhook gets.
func filtersOf(w *client.Webhook) string {
	s := "all events"
	if len(w.Types) > 0 {
		s = strings.Join(w.Types, ", ")
	}
	for _, f := range []struct {
		name string
		list []string
	}{{"category", w.Categories}, {"priority", w.Priorities}} {
		if len(f.list) > 0 {
			s += fmt.Sprintf("; of proposals with the %s %s", f.name, strings.Join(f.list, " or "))
		}
	}
	return cleanLine(s)
}

type webhookListCmd struct {
	serverFlags `embed:""`
	wideFlag    `embed:""`
}

// Help is shown by --help.
func (webhookListCmd) Help() string {
	return "Newest first, without their secrets. PENDING counts later events, of all types. " + needsAdmin +
		examples("parley webhook list", "parley webhook list --json")
}

func (c *webhookListCmd) Run(e *env) error {
	list, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) ([]client.Webhook, error) {
			return api.Webhooks.List(e.ctx, raw)
		})
	if done {
		return err
	}
	t := table{
		head:   []string{"ID", "STATE", "PENDING", "FORMAT", "TYPES", "LAST ERROR", "URL"},
		ids:    "webhook",
		colour: map[int]func(string) string{1: e.palette().status},
		drop:   []string{"FORMAT", "LAST ERROR", "TYPES"},
		wide:   c.Wide,
	}
	for _, w := range list {
		types := "all"
		if n := len(w.Types); n > 2 {
			types = fmt.Sprintf("%d types", n)
		} else if n > 0 {
			types = strings.Join(w.Types, " ")
		}
		t.add(w.ID, string(w.State), fmt.Sprint(w.Pending), string(w.Format), types, orNone(w.LastError), w.URL)
	}
	return e.list(&t, "webhook", "webhooks", len(list), 1, false)
}

type webhookShowCmd struct {
	oneWebhook `embed:""`
}

// Help is shown by --help.
func (webhookShowCmd) Help() string {
	return "Without its secret. " + needsAdmin +
		examples("parley webhook show hook-01k…", "parley webhook show hook-01k… --json | jq .pending")
}

func (c *webhookShowCmd) Run(e *env) error {
	return c.show(e, func(api *client.Client, raw client.Option) (*client.Webhook, error) {
		return api.Webhooks.Get(e.ctx, c.ID, raw)
	})
}

// show makes a call about a webhook and prints the webhook.
func (c *oneWebhook) show(e *env, do func(*client.Client, client.Option) (*client.Webhook, error)) error {
	w, done, err := ask(e, &c.serverFlags, c.about(), do)
	if done {
		return err
	}
	rec := record{p: e.palette()}
	rec.heading(w.ID)
	rec.field("url", cleanLine(w.URL))
	rec.field("description", cleanLine(w.Description))
	rec.field("state", rec.p.status(cleanLine(string(w.State))))
	rec.field("gets", filtersOf(w))
	rec.field("format", cleanLine(string(w.Format)))
	rec.field("public key", cleanLine(w.PublicKey))
	if !w.SecretOverlapUntil.IsZero() {
		rec.field("old secret", "until "+when(w.SecretOverlapUntil)+" UTC")
	}
	rec.field("created", when(w.CreatedAt)+" UTC by "+cleanLine(w.CreatedBy))
	rec.field("changed", when(w.UpdatedAt)+" UTC")
	rec.field("last event", fmt.Sprintf("%d; %d pending", w.LastSeq, w.Pending))
	rec.field("last attempt", when(w.LastAttemptAt))
	if w.LastError != "" {
		rec.field("last error", fmt.Sprintf("%s (failed attempts: %d)", cleanLine(w.LastError), w.Attempts))
	}
	if !w.FailingSince.IsZero() {
		rec.field("failing since", when(w.FailingSince)+" UTC")
	}
	if !w.NextAttemptAt.IsZero() {
		rec.field("next attempt", when(w.NextAttemptAt)+" UTC")
	}
	_, err = e.stdout.Write([]byte(rec.b.String()))
	return err
}

type webhookDeleteCmd struct {
	oneWebhook `embed:""`
}

// Help is shown by --help.
func (webhookDeleteCmd) Help() string {
	return "Nothing is sent to it any more, and its list of deliveries is deleted. To stop it for a while, use webhook " +
		"pause. " + needsAdmin + examples("parley webhook delete hook-01k…")
}

func (c *webhookDeleteCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	gone, done, err := askAt(e, r, c.JSON, c.about(),
		func(api *client.Client, raw client.Option) (*client.Webhook, error) {
			return api.Webhooks.Delete(e.ctx, c.ID, raw)
		})
	if done {
		return err
	}
	return e.say("deleted webhook %q %s", gone.ID, r.in(e))
}
