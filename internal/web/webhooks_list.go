package web

import (
	"net/http"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/webhook"
)

func (p *Pages) mountWebhooks() {
	p.orgPages(map[string]handler{
		"GET /webhooks":                 (*visit).webhooksPage,
		"GET /webhooks/new":             (*visit).newWebhookPage,
		"POST /webhooks":                (*visit).createWebhook,
		"GET /webhooks/{id}":            (*visit).webhookPage,
		"POST /webhooks/{id}":           (*visit).changeWebhook,
		"POST /webhooks/{id}/state":     (*visit).pauseWebhook,
		"POST /webhooks/{id}/ping":      (*visit).pingWebhook,
		"POST /webhooks/{id}/redeliver": (*visit).redeliverWebhook,
		"POST /webhooks/{id}/rotate":    (*visit).rotateWebhook,
		"POST /webhooks/{id}/delete":    (*visit).deleteWebhook,
	})
}

// webhooksView is the list of the org's webhooks.
type webhooksView struct {
	Rows   []webhookRow
	Failed bool // only the ones that were given up
	More   int  // webhooks that the list leaves out
	All    string
}

// maxWebhookRows limits the list; the operator chooses how many webhooks an org may have.
const maxWebhookRows = 200

// webhookRow is a webhook in a list. Its URL can contain a secret, so lists show the host only.
type webhookRow struct {
	webhook.Webhook
	Title   string
	To      string // scheme and host
	Href    string
	Waiting int64 // events of the log after its cursor
	Tone    string
	Status  string
}

func (v *visit) webhookRow(w *webhook.Webhook) webhookRow {
	out := webhookRow{
		Webhook: *w, Title: w.Description, To: w.Receiver(), Href: v.base() + "/webhooks/" + w.ID,
		Waiting: max(w.Head-w.Cursor, 0), Tone: "ok", Status: string(w.State),
	}
	if out.Title == "" {
		out.Title = out.To
	}
	switch {
	case w.State == webhook.Failed:
		out.Status, out.Tone = "given up", "high"
	case w.State == webhook.Paused:
		out.Tone = ""
	case w.Attempts > 0:
		out.Status, out.Tone = "failing", "warn"
	}
	return out
}

// webhooksPage lists the webhooks, newest first. The parameter state=failed shows only those that
// were given up.
func (v *visit) webhooksPage() error {
	a, err := v.access(identity.ManageWebhooks)
	if err != nil {
		return err
	}
	state := v.r.URL.Query().Get("state")
	if state != "" && state != string(webhook.Failed) {
		return fieldError("state", "must be "+string(webhook.Failed)+", or left out")
	}
	list, err := v.Webhooks.List(v.r.Context(), a)
	if err != nil {
		return err
	}
	out := webhooksView{Failed: state != "", All: v.base() + "/webhooks"}
	for i := range list {
		switch {
		case out.Failed && list[i].State != webhook.Failed:
		case len(out.Rows) == maxWebhookRows:
			out.More++
		default:
			out.Rows = append(out.Rows, v.webhookRow(&list[i]))
		}
	}
	return render(v, http.StatusOK, "webhooks", "Webhooks", out)
}

// newWebhookView is the form for a new webhook.
type newWebhookView struct{ Form webhookForm }

func (v *visit) newWebhookPage() error {
	return v.showNewWebhook(typedWebhook{Format: webhook.Standard}, nil)
}

func (v *visit) showNewWebhook(typed typedWebhook, problem error) error {
	if _, err := v.access(identity.ManageWebhooks); err != nil {
		return err
	}
	return renderForm(v, http.StatusOK, "webhook_new", "New webhook", newWebhookView{newWebhookForm(typed)}, problem)
}

// createWebhook creates a webhook, and shows its secret once. A webhook outlives the session and
// gets what only admins see, so it needs the password again.
func (v *visit) createWebhook() error {
	a, err := v.access(identity.ManageWebhooks)
	typed := v.typedWebhook()
	to := (&webhook.Webhook{URL: typed.URL}).Receiver()
	if err != nil {
		return v.audited(webhook.AuditCreate, to, err)
	}
	if err := v.confirmReceiver("password", true); err != nil {
		return v.showNewWebhook(typed, v.audited(webhook.AuditCreate, to, err))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	w, value, err := v.Webhooks.Create(ctx, a, webhook.Creation{
		URL: typed.URL, Types: typed.Types, Categories: typed.Categories, Priorities: typed.Priorities,
		Description: typed.Description, Format: typed.Format,
	})
	if err != nil && !sealed(err) {
		return v.showNewWebhook(typed, v.audited(webhook.AuditCreate, to, err))
	}
	if w.ID == "" { // created by the first submission, from another session
		return v.done(v.base()+"/webhooks", "The webhook was already created. Its secret was shown once.")
	}
	return v.showWebhook(http.StatusCreated, a, &w, webhookExtras{Secret: v.newSecret("webhook", value, once)}, nil)
}

// confirmReceiver asks for the password before the org's events go to another URL, or under another
// secret. It removes the password from the form, so that it is not stored with it.
func (v *visit) confirmReceiver(field string, needed bool) error {
	password := v.r.PostFormValue(field)
	v.r.PostForm.Del(field)
	if !needed {
		return nil
	}
	return v.confirmWith(field, password, "is required, because the webhook sends events of the org elsewhere")
}
