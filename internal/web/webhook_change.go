package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/webhook"
)

// webhookRefused returns the error of an action on a webhook, and audits it. If the webhook was deleted
// meanwhile, it goes back to the list.
func (v *visit) webhookRefused(action identity.AuditAction, err error) error {
	if errs.KindOf(err) == errs.NotFound {
		return v.done(v.base()+"/webhooks", refusal("This webhook no longer exists."))
	}
	return v.audited(action, v.r.PathValue("id"), err)
}

// rejectedWebhook shows the page of a webhook with the error of one of its forms.
func (v *visit) rejectedWebhook(
	a identity.Access, w *webhook.Webhook, action identity.AuditAction, part webhookExtras, err error,
) error {
	return v.showWebhook(http.StatusOK, a, w, part, v.audited(action, w.ID, err))
}

// changeWebhook changes the settings, unless they have changed since the form was shown. A new URL
// needs the password.
func (v *visit) changeWebhook() error {
	a, w, err := v.webhookInPath()
	if err != nil {
		return v.webhookRefused(webhook.AuditUpdate, err)
	}
	typed := v.typedWebhook()
	version, err := strconv.ParseInt(v.value("version"), 10, 64)
	if err != nil {
		return errIncomplete
	}
	edit := webhook.Edit{
		Types: &typed.Types, Categories: &typed.Categories, Priorities: &typed.Priorities,
		Description: &typed.Description, Format: &typed.Format, IfVersion: &version,
	}
	moved := typed.URL != w.URL
	if moved {
		edit.URL = &typed.URL
	}
	if err := v.confirmReceiver("password", moved); err != nil {
		return v.rejectedWebhook(a, &w, webhook.AuditUpdate, webhookExtras{Typed: &typed}, err)
	}
	ctx, _, err := v.begin()
	if err != nil {
		return err
	}
	switch _, err = v.Webhooks.Update(ctx, a, w.ID, edit); {
	case err == nil:
		return v.done(v.base()+"/webhooks/"+w.ID, "The webhook was changed.")
	case errs.KindOf(err) == errs.Stale:
		return v.rejectedWebhook(a, &w, webhook.AuditUpdate, webhookExtras{}, err)
	default:
		return v.rejectedWebhook(a, &w, webhook.AuditUpdate, webhookExtras{Typed: &typed}, err)
	}
}

// pauseWebhook pauses a webhook, or sets it active again.
func (v *visit) pauseWebhook() error {
	a, w, err := v.webhookInPath()
	if err != nil {
		return v.webhookRefused(webhook.AuditUpdate, err)
	}
	state := webhook.State(v.value("state"))
	if state != webhook.Active && state != webhook.Paused {
		return errIncomplete
	}
	ctx, _, err := v.begin()
	if err != nil {
		return err
	}
	if _, err := v.Webhooks.Update(ctx, a, w.ID, webhook.Edit{State: &state}); err != nil {
		return v.rejectedWebhook(a, &w, webhook.AuditUpdate, webhookExtras{}, err)
	}
	message := "The webhook is paused. Events wait until you resume it, as long as the server keeps them."
	if state == webhook.Active {
		message = "The webhook is active. It continues after the last event that it sent or passed over."
	}
	return v.done(v.base()+"/webhooks/"+w.ID, message)
}

// awaitReceiver gives back the slot of a request that waits for a receiver. The service limits how
// many an org has at once.
func (v *visit) awaitReceiver() error {
	if err := v.router.Park(v.r.Context(), httpx.Wait); err != nil {
		return err
	}
	v.router.Yield(v.r.Context())
	return nil
}

// pingWebhook sends a test event.
func (v *visit) pingWebhook() error {
	a, w, err := v.webhookInPath()
	if err != nil {
		return v.webhookRefused(webhook.AuditPing, err)
	}
	return v.sendNow(a, &w, webhook.AuditPing, func() (webhook.Delivery, error) {
		return v.Webhooks.Ping(v.r.Context(), a, w.ID)
	})
}

// sendNow makes an attempt, and says how it ended.
func (v *visit) sendNow(
	a identity.Access, w *webhook.Webhook, action identity.AuditAction, send func() (webhook.Delivery, error),
) error {
	err := v.awaitReceiver()
	var d webhook.Delivery
	if err == nil {
		d, err = send()
	}
	if err != nil && errs.As(err).Code == "webhook.no_event" {
		err = errs.New(errs.Conflict, errs.As(err).Code,
			"the event is no longer kept, or the webhook does not get it any more, so nothing was sent")
	}
	if err != nil {
		return v.rejectedWebhook(a, w, action, webhookExtras{}, err)
	}
	page := v.base() + "/webhooks/" + w.ID
	if d.Outcome != delivery.Delivered {
		return v.done(page, refusal("The receiver did not accept the event: "+harmless(d.Error)))
	}
	return v.done(page,
		fmt.Sprintf("The receiver accepted the event with status %d after %s.", d.Status, elapsed(d.Latency)))
}

// sinceFormat is the format of a field for a date and a time.
const sinceFormat = "2006-01-02T15:04"

// redeliverWebhook sends one event again, or all since a time.
func (v *visit) redeliverWebhook() error {
	a, w, err := v.webhookInPath()
	if err != nil {
		return v.webhookRefused(webhook.AuditRedeliver, err)
	}
	if id := v.value("event_id"); id != "" {
		return v.sendNow(a, &w, webhook.AuditRedeliver, func() (webhook.Delivery, error) {
			return v.Webhooks.Redeliver(v.r.Context(), a, w.ID, id)
		})
	}
	part := webhookExtras{Since: v.value("since")}
	since, err := time.Parse(sinceFormat, part.Since)
	if err != nil {
		err = fieldError("since", "must be a day and a time in UTC, such as 2026-03-31T14:30")
		return v.rejectedWebhook(a, &w, webhook.AuditRedeliver, part, err)
	}
	moved, err := v.Webhooks.RedeliverSince(v.r.Context(), a, w.ID, since)
	if err != nil {
		return v.rejectedWebhook(a, &w, webhook.AuditRedeliver, part, err)
	}
	message := "There was no event since then, so nothing is sent again."
	switch {
	case moved.Cursor < w.Cursor && moved.State != webhook.Active:
		message = "Events since then are sent again once the webhook is active."
	case moved.Cursor < w.Cursor:
		message = "Events since then are sent again now. Receivers recognize what they have by the id of the event."
	}
	return v.done(v.base()+"/webhooks/"+w.ID, message)
}

// rotateWebhook replaces the secret, and shows the new one once.
func (v *visit) rotateWebhook() error {
	a, w, err := v.webhookInPath()
	if err != nil {
		return v.webhookRefused(webhook.AuditRotate, err)
	}
	d, err := v.overlapOf()
	if err == nil {
		err = v.confirmReceiver("confirm", true)
	}
	if err != nil {
		return v.rejectedWebhook(a, &w, webhook.AuditRotate, webhookExtras{}, err)
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	next, value, err := v.Webhooks.Rotate(ctx, a, w.ID, d)
	switch {
	case sealed(err):
		next = w // already rotated by the first submission
	case err != nil:
		return v.rejectedWebhook(a, &w, webhook.AuditRotate, webhookExtras{}, err)
	}
	return v.showWebhook(http.StatusCreated, a, &next, webhookExtras{Secret: v.newSecret("webhook", value, once)}, nil)
}

// deleteWebhook deletes a webhook with its log of deliveries.
func (v *visit) deleteWebhook() error {
	a, w, err := v.webhookInPath()
	if err == nil {
		err = v.Webhooks.Delete(v.r.Context(), a, w.ID)
	}
	if err != nil {
		return v.webhookRefused(webhook.AuditDelete, err)
	}
	row := v.webhookRow(&w)
	return v.done(v.base()+"/webhooks", "The webhook “"+row.Title+"” was deleted. Nothing more is sent to it.")
}
