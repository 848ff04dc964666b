package cli

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

type webhookUpdateCmd struct {
	oneWebhook     `embed:""`
	onceFlag       `embed:""`
	webhookFilters `embed:""`
	URL            *string `name:"url" help:"Where to send events; https." placeholder:"URL"`
	Description    *string `help:"What it is for, in one line." placeholder:"TEXT"`
	Format         *string `help:"standard, cloudevents or slack." placeholder:"FORMAT"`
}

// Help is shown by --help.
func (webhookUpdateCmd) Help() string {
	return "What is not given stays. The values of a filter replace all others; all ends the filter. The secret stays, " +
		"also with another URL; webhook rotate replaces it. " + needsAdmin + examples(
		"parley webhook update hook-01k… --url https://crm.example/v2/hooks",
		"parley webhook update hook-01k… --types proposal.approved,proposal.rejected --categories security",
		"parley webhook update hook-01k… --types all --json",
	)
}

func (c *webhookUpdateCmd) Run(e *env) error {
	change := client.WebhookPatch{URL: c.URL, Description: c.Description, Format: (*client.WebhookFormat)(c.Format)}
	for _, f := range []struct {
		given []string
		into  **[]string
	}{{c.Types, &change.Types}, {c.Categories, &change.Categories}, {c.Priorities, &change.Priorities}} {
		if f.given != nil {
			list := orAll(f.given)
			*f.into = &list
		}
	}
	if change == (client.WebhookPatch{}) {
		return usage("nothing to change; give at least one of --url, --types, --categories, --priorities, --description " +
			"and --format")
	}
	return c.show(e, func(api *client.Client, raw client.Option) (*client.Webhook, error) {
		return api.Webhooks.Update(e.ctx, c.ID, change, c.once(), raw)
	})
}

type webhookPauseCmd struct {
	oneWebhook `embed:""`
}

// Help is shown by --help.
func (webhookPauseCmd) Help() string {
	return "Events that happen meanwhile are sent after webhook resume, as far as the server still keeps them. " +
		needsAdmin + examples("parley webhook pause hook-01k…")
}

func (c *webhookPauseCmd) Run(e *env) error { return c.turn(e, client.WebhookPaused, "paused") }

type webhookResumeCmd struct {
	oneWebhook `embed:""`
}

// Help is shown by --help.
func (webhookResumeCmd) Help() string {
	return "It continues with the event after the last one that was sent, as far as the server still keeps it. " +
		needsAdmin + examples("parley webhook resume hook-01k…")
}

func (c *webhookResumeCmd) Run(e *env) error { return c.turn(e, client.WebhookActive, "resumed") }

// turn sets the state of a webhook.
func (c *oneWebhook) turn(e *env, state client.WebhookState, did string) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	w, done, err := askAt(e, r, c.JSON, c.about(),
		func(api *client.Client, raw client.Option) (*client.Webhook, error) {
			return api.Webhooks.Update(e.ctx, c.ID, client.WebhookPatch{State: &state}, raw)
		})
	if done {
		return err
	}
	return e.say("%s webhook %q %s; %d events are pending", did, w.ID, r.in(e), w.Pending)
}

type webhookRotateCmd struct {
	oneWebhook `embed:""`
	Overlap    time.Duration `help:"How long the old secret signs, too, at most 7d; not at all if not given." placeholder:"DURATION"`
}

// Help is shown by --help.
func (webhookRotateCmd) Help() string {
	return "During the overlap, requests have a signature of both secrets. Only the new secret goes to stdout; the rest " +
		"goes to stderr. It is shown once. A second rotation ends the oldest secret at once. " + needsAdmin +
		examples("SECRET=$(parley webhook rotate hook-01k… --overlap 1h)", "parley webhook rotate hook-01k… --json")
}

func (c *webhookRotateCmd) Run(e *env) error {
	rotation := client.KeyRotation{OverlapSeconds: seconds(c.Overlap)}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	w, done, err := askAt(e, r, c.JSON, c.about(),
		func(api *client.Client, raw client.Option) (*client.WebhookWithSecret, error) {
			return api.Webhooks.Rotate(e.ctx, c.ID, rotation, raw)
		})
	if done {
		return err
	}
	old := "ended"
	if !w.SecretOverlapUntil.IsZero() {
		old = "signs, too, until " + when(w.SecretOverlapUntil) + " UTC"
	}
	fmt.Fprintf(e.stderr, "rotated the secret of webhook %q %s; the old one %s\n", cleanLine(w.ID), r.in(e), old)
	_, err = fmt.Fprintln(e.stdout, cleanLine(w.Secret))
	return err
}
