package web

import (
	"net/http"
	"strconv"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
	"github.com/parley-dev/parley/internal/webhook"
)

// webhookView is the page of a webhook.
type webhookView struct {
	Hook       webhookRow
	Form       webhookForm
	Deliveries []sentRow
	Overlaps   []overlap
	OldWorks   bool // the previous secret still signs
	Failed     bool
	Paused     bool
	Kept       int // deliveries that are kept
	webhookExtras
}

// webhookExtras are what one response shows in addition.
type webhookExtras struct {
	Secret *secret       // only in the response that created it
	Typed  *typedWebhook // values of a form that was rejected
	Since  string        // of the form that sends events again
}

// sentRow is a row of the log: one attempt to deliver an event.
type sentRow struct {
	webhook.Delivery
	Answer  string // first bytes of the response, harmless
	Problem string
	Took    string
	Event   string // page of the event; empty if it is not in the log
	Good    bool
	GivenUp bool
}

// webhookInPath returns the webhook in the path, if the member may manage webhooks.
func (v *visit) webhookInPath() (identity.Access, webhook.Webhook, error) {
	a, err := v.access(identity.ManageWebhooks)
	if err != nil {
		return a, webhook.Webhook{}, err
	}
	w, err := v.Webhooks.Get(v.r.Context(), a, v.r.PathValue("id"))
	return a, w, err
}

func (v *visit) webhookPage() error {
	a, w, err := v.webhookInPath()
	if err != nil {
		return err
	}
	return v.showWebhook(http.StatusOK, a, &w, webhookExtras{}, nil)
}

// showWebhook shows a webhook with its last deliveries.
func (v *visit) showWebhook(
	status int, a identity.Access, w *webhook.Webhook, part webhookExtras, problem error,
) error {
	list, err := v.Webhooks.Deliveries(v.r.Context(), a, w.ID, 0)
	if err != nil {
		return err
	}
	typed := typedOf(w)
	if part.Typed != nil {
		typed = *part.Typed
	}
	out := webhookView{
		Hook: v.webhookRow(w), Form: newWebhookForm(typed), Overlaps: overlaps(), webhookExtras: part,
		OldWorks: v.Now().Before(w.OldSecretUntil), Failed: w.State == webhook.Failed, Paused: w.State == webhook.Paused,
		Kept: webhook.MaxDeliveries,
	}
	for i := range list {
		out.Deliveries = append(out.Deliveries, v.sentRow(&list[i]))
	}
	return renderForm(v, status, "webhook", out.Hook.Title, out, problem)
}

func (v *visit) sentRow(d *webhook.Delivery) sentRow {
	out := sentRow{
		Delivery: *d, Answer: harmless(d.Response), Problem: harmless(d.Error), Took: elapsed(d.Latency),
		Good: d.Outcome == delivery.Delivered, GivenUp: d.Outcome == delivery.GivenUp,
	}
	if d.Seq > 0 {
		out.Event = v.eventPath(d.Seq, d.EventID)
	}
	return out
}

// eventPath returns the place of an event in the feed, which begins with it.
func (v *visit) eventPath(seq int64, id string) string {
	return link(v.base()+"/events", "cursor", strconv.FormatInt(seq+1, 10)) + "#" + id
}

// maxHarmless limits text from outside of the org, in characters.
const maxHarmless = 300

// harmless returns text that a stranger wrote, such as the response of a receiver, as one bounded
// line with all characters visible.
func harmless(s string) string {
	out, cut := text.Escape(s, maxHarmless, text.InProse)
	if cut {
		out += "…"
	}
	return out
}
