package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/webhook"
)

const (
	webhooksPath   = "/api/v1/orgs/{org}/webhooks"
	webhookPath    = webhooksPath + "/{id}"
	deliveriesPath = webhookPath + "/deliveries"

	rotateWebhookPath = webhookPath + "/rotate"
)

// WebhookPath is the path of one webhook.
type WebhookPath struct {
	OrgPath
	ID string `path:"id" pattern:"^hook-[0-9a-z]{1,59}$" doc:"The webhook's id." example:"hook-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

const (
	// shownOnce ends the description of operations that return the secret of a webhook. Unlike that
	// of a key, the server stores it, because it signs with it.
	shownOnce = " The secret is returned once, and again for the same Idempotency-Key, body and credentials."

	// noSession ends the description of operations that a browser session may not use.
	noSession = " 403 auth.confirm in a browser session, which alone must not decide where events are sent: use a " +
		"key or an access token."
)

// errWebhookConfirm is identity.ErrConfirm for webhooks. The dashboard asks for the password instead.
var errWebhookConfirm = errs.New(errs.Forbidden, identity.ErrConfirm.Code,
	"a browser session alone cannot do this, because it decides where the org's events are sent: use a key, or the "+
		"command line after \"parley login\"")

// confirmed refuses browser sessions. A webhook outlives the session that made it, and gets what
// only admins see, like a key with svc:admin:admin.
func (c *call) confirmed() error {
	if c.Caller().CheckConfirmed(identity.Scopes{identity.Admin}) != nil {
		return errWebhookConfirm
	}
	return nil
}

func (a *api) registerWebhooks() {
	register(a, operation{
		id: "list-webhooks", method: http.MethodGet, path: webhooksPath, tag: tagWebhooks,
		summary: "List the webhooks of the org", action: identity.ManageWebhooks,
		description: "Newest first, without secrets." + needsAdmin,
	}, a.listWebhooks)
	register(a, operation{
		id: "create-webhook", method: http.MethodPost, path: webhooksPath, tag: tagWebhooks, status: http.StatusCreated,
		summary: "Create a webhook", action: identity.ManageWebhooks, audit: webhook.AuditCreate,
		errors: []int{http.StatusConflict},
		description: "Events that happen from now on are sent to the URL as Standard Webhooks, in their order; drafts are " +
			"never sent. Nothing is sent until an event happens; ping it to test it. 409 webhook.too_many if the " +
			"org has as many as it may." + shownOnce + noSession + needsAdmin,
	}, a.createWebhook)
	register(a, operation{
		id: "get-webhook", method: http.MethodGet, path: webhookPath, tag: tagWebhooks,
		summary: "Get a webhook", action: identity.ManageWebhooks, validID: webhook.ValidID,
		description: "With its progress, without the secret." + needsAdmin,
	}, a.getWebhook)
	register(a, operation{
		id: "change-webhook", method: http.MethodPatch, path: webhookPath, tag: tagWebhooks,
		summary: "Change, pause or resume a webhook", action: identity.ManageWebhooks, validID: webhook.ValidID,
		audit: webhook.AuditUpdate, errors: []int{http.StatusPreconditionFailed},
		description: "Changes the given fields. A webhook that is paused or failed sends nothing; with the state active it " +
			"continues after the last event that it sent or passed over, as far as events are still kept. With a new url:" +
			noSession + needsAdmin,
	}, a.changeWebhook)
	register(a, operation{
		id: "rotate-webhook", method: http.MethodPost, path: rotateWebhookPath, tag: tagWebhooks,
		summary: "Rotate the secret of a webhook", action: identity.ManageWebhooks, validID: webhook.ValidID,
		audit: webhook.AuditRotate,
		description: "Until the overlap ends, requests are signed with the current secret and the new one; an older one " +
			"ends at once. The public key stays." + shownOnce + noSession + needsAdmin,
	}, a.rotateWebhook)
	a.huma.OpenAPI().Paths[rotateWebhookPath].Post.RequestBody.Required = false
	register(a, operation{
		id: "ping-webhook", method: http.MethodPost, path: webhookPath + "/ping", tag: tagWebhooks,
		summary: "Send a test event to a webhook", action: identity.ManageWebhooks, validID: webhook.ValidID,
		audit: webhook.AuditPing,
		description: "Sends an event of the type webhook.ping now, whatever the state and the filters of the webhook, and " +
			"returns the outcome: 200 also if the receiver failed. It is sent once and is not in the log of events." +
			needsAdmin,
	}, a.pingWebhook)
	register(a, operation{
		id: "list-webhook-deliveries", method: http.MethodGet, path: deliveriesPath, tag: tagWebhooks,
		summary: "List the last deliveries of a webhook", action: identity.ManageWebhooks, validID: webhook.ValidID,
		description: "Every attempt, newest first, with what the receiver responded. The last 100 are kept." + needsAdmin,
	}, a.listDeliveries)
	register(a, operation{
		id: "redeliver-webhook", method: http.MethodPost, path: webhookPath + "/redeliver", tag: tagWebhooks,
		summary: "Send events to a webhook again", action: identity.ManageWebhooks, validID: webhook.ValidID,
		audit: webhook.AuditRedeliver,
		description: "With event_id, sends that event now, once, and returns the delivery. With since, the webhook " +
			"continues with the first event at that time or later, and the webhook is returned. Receivers recognize what " +
			"they have by the id of the event. 404 webhook.no_event if the event is not kept, or not one that the webhook " +
			"gets." + needsAdmin,
	}, a.redeliverWebhook)
	register(a, operation{
		id: "delete-webhook", method: http.MethodDelete, path: webhookPath, tag: tagWebhooks,
		summary: "Delete a webhook", action: identity.ManageWebhooks, validID: webhook.ValidID,
		audit:       webhook.AuditDelete,
		description: "Deletes the webhook with its deliveries. Returns the deleted webhook; 404 if repeated." + needsAdmin,
	}, a.deleteWebhook)
}

type listWebhooksOutput struct{ Body WebhookList }

func (a *api) listWebhooks(ctx context.Context, c *call, _ *OrgPath) (*listWebhooksOutput, error) {
	list, err := a.webhooks.List(ctx, c.Access)
	if err != nil {
		return nil, err
	}
	out := &listWebhooksOutput{Body: WebhookList{Webhooks: make([]Webhook, len(list))}}
	for i := range list {
		out.Body.Webhooks[i] = webhookOf(&list[i])
	}
	return out, nil
}

type createWebhookInput struct {
	OrgPath
	OnceHeader
	Body payload[WebhookCreation]
}

type newWebhookOutput struct {
	Location string `header:"Location" doc:"URL of the new webhook."`
	ETag     string `header:"ETag" doc:"The version of the settings, for If-Match."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     WebhookWithSecret
}

func (a *api) createWebhook(ctx context.Context, c *call, in *createWebhookInput) (*newWebhookOutput, error) {
	b := &in.Body.value
	c.target = (&webhook.Webhook{URL: b.URL}).Receiver()
	cmd := webhook.Creation{
		URL: b.URL, Types: typesOf(b.Types), Categories: b.Categories, Priorities: b.Priorities,
		Description: deref(b.Description), State: webhook.State(deref(b.State)), Format: webhook.Format(deref(b.Format)),
	}
	wrong := append(notEmpty("state", b.State), notEmpty("format", b.Format)...)
	if err := in.Body.check(nil, wrong...); err != nil {
		return nil, err
	}
	if err := c.confirmed(); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	h, secret, err := a.webhooks.Create(ctx, c.Access, cmd)
	if err != nil {
		return nil, err
	}
	return &newWebhookOutput{
		Location: c.request.URL.EscapedPath() + "/" + h.ID, ETag: webhookTag(&h), Replayed: replayed(once.Replayed()),
		Body: WebhookWithSecret{Secret: secret, Webhook: webhookOf(&h)},
	}, nil
}

// webhookTag returns the ETag of the settings. The progress changes without it, so it is not for
// If-None-Match.
func webhookTag(h *webhook.Webhook) string { return etag(h.Version, "") }

type webhookInput struct{ WebhookPath }

type getWebhookOutput struct {
	ETag string `header:"ETag" doc:"The version of the settings, for If-Match. The progress changes without it."`
	Body Webhook
}

func (a *api) getWebhook(ctx context.Context, c *call, in *webhookInput) (*getWebhookOutput, error) {
	h, err := a.webhooks.Get(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	return &getWebhookOutput{ETag: webhookTag(&h), Body: webhookOf(&h)}, nil
}

type changeWebhookInput struct {
	WebhookPath
	OnceHeader
	IfMatch string `header:"If-Match" doc:"ETag of the version you read. 412 if the settings have changed since."`
	Body    payload[WebhookPatch]
}

type changeWebhookOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the settings."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     Webhook
}

func (a *api) changeWebhook(ctx context.Context, c *call, in *changeWebhookInput) (*changeWebhookOutput, error) {
	b := &in.Body.value
	e := b.edit()
	var wrong []errs.Field
	if e == (webhook.Edit{}) && len(in.Body.broken) == 0 {
		wrong = append(wrong, errs.Field{
			Message: "must contain at least one of url, types, categories, priorities, description, state and format",
		})
	}
	if err := in.Body.check(nil, wrong...); err != nil {
		return nil, err
	}
	if b.URL != nil {
		if err := c.confirmed(); err != nil {
			return nil, err
		}
	}
	var err error
	if e.IfVersion, err = ifMatch(c.request.Header, func() (int64, error) {
		h, err := a.webhooks.Get(ctx, c.Access, in.ID)
		return h.Version, err
	}); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	h, err := a.webhooks.Update(ctx, c.Access, in.ID, e)
	if err != nil {
		return nil, err
	}
	return &changeWebhookOutput{ETag: webhookTag(&h), Replayed: replayed(once.Replayed()), Body: webhookOf(&h)}, nil
}

type rotateWebhookInput struct {
	WebhookPath
	OnceHeader
	Body payload[WebhookRotation] // optional
}

type rotateWebhookOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the settings."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     WebhookWithSecret
}

func (a *api) rotateWebhook(ctx context.Context, c *call, in *rotateWebhookInput) (*rotateWebhookOutput, error) {
	overlap := seconds(or(in.Body.value.OverlapSeconds, 0))
	if err := in.Body.check(identity.CheckOverlap(overlap)); err != nil {
		return nil, err
	}
	if err := c.confirmed(); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, &in.Body.value)
	if err != nil {
		return nil, err
	}
	h, secret, err := a.webhooks.Rotate(ctx, c.Access, in.ID, overlap)
	if err != nil {
		return nil, err
	}
	return &rotateWebhookOutput{
		ETag: webhookTag(&h), Replayed: replayed(once.Replayed()),
		Body: WebhookWithSecret{Secret: secret, Webhook: webhookOf(&h)},
	}, nil
}

// unkeyed refuses an Idempotency-Key: the request sends something to the receiver each time.
func (c *call) unkeyed() error {
	if len(c.request.Header.Values(idempotencyHeader)) == 0 {
		return nil
	}
	return httpx.InvalidParts(httpx.Part{
		In: httpx.Header, Name: idempotencyHeader,
		Message: "cannot be used here: each request sends to the receiver; receivers drop repeats by the id of the event",
	})
}

// awaitReceiver gives back the slot of a request that waits for a receiver, up to ten seconds. The
// service limits how many an org has at once.
func (a *api) awaitReceiver(ctx context.Context) error {
	if err := a.router.Park(ctx, httpx.Wait); err != nil {
		return err
	}
	a.router.Yield(ctx)
	return nil
}

type deliveryOutput struct{ Body WebhookDelivery }

func (a *api) pingWebhook(ctx context.Context, c *call, in *webhookInput) (*deliveryOutput, error) {
	if err := c.unkeyed(); err != nil {
		return nil, err
	}
	if err := a.awaitReceiver(ctx); err != nil {
		return nil, err
	}
	d, err := a.webhooks.Ping(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	return &deliveryOutput{Body: deliveryOf(&d)}, nil
}

const defaultDeliveries = 20

type deliveryLimit int

func (deliveryLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, webhook.MaxDeliveries, defaultDeliveries)
}

type listDeliveriesInput struct {
	WebhookPath
	Limit deliveryLimit `query:"limit" doc:"How many."`
}

type listDeliveriesOutput struct{ Body WebhookDeliveryList }

func (a *api) listDeliveries(ctx context.Context, c *call, in *listDeliveriesInput) (*listDeliveriesOutput, error) {
	limit := int(in.Limit)
	if limit == 0 {
		limit = defaultDeliveries
	}
	list, err := a.webhooks.Deliveries(ctx, c.Access, in.ID, limit)
	if err != nil {
		return nil, err
	}
	out := &listDeliveriesOutput{Body: WebhookDeliveryList{Deliveries: make([]WebhookDelivery, len(list))}}
	for i := range list {
		out.Body.Deliveries[i] = deliveryOf(&list[i])
	}
	return out, nil
}

type redeliverWebhookInput struct {
	WebhookPath
	Body payload[WebhookRedelivery]
}

type redeliverWebhookOutput struct{ Body redelivered }

func (a *api) redeliverWebhook(
	ctx context.Context, c *call, in *redeliverWebhookInput,
) (*redeliverWebhookOutput, error) {
	b := &in.Body.value
	since, wrong := b.read()
	if b.EventID == nil && b.Since == nil && len(in.Body.broken) == 0 || b.EventID != nil && b.Since != nil {
		wrong = []errs.Field{{Message: "must contain either event_id or since"}}
	}
	if err := in.Body.check(nil, wrong...); err != nil {
		return nil, err
	}
	if err := c.unkeyed(); err != nil {
		return nil, err
	}
	out := &redeliverWebhookOutput{}
	if b.EventID != nil {
		if err := a.awaitReceiver(ctx); err != nil {
			return nil, err
		}
		d, err := a.webhooks.Redeliver(ctx, c.Access, in.ID, *b.EventID)
		if err != nil {
			return nil, err
		}
		sent := deliveryOf(&d)
		out.Body.delivery = &sent
		return out, nil
	}
	h, err := a.webhooks.RedeliverSince(ctx, c.Access, in.ID, since)
	if err != nil {
		return nil, err
	}
	moved := webhookOf(&h)
	out.Body.webhook = &moved
	return out, nil
}

type deleteWebhookOutput struct{ Body Webhook }

func (a *api) deleteWebhook(ctx context.Context, c *call, in *webhookInput) (*deleteWebhookOutput, error) {
	h, err := a.webhooks.Get(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	if err := a.webhooks.Delete(ctx, c.Access, in.ID); err != nil {
		return nil, err
	}
	return &deleteWebhookOutput{Body: webhookOf(&h)}, nil
}

// typesOf converts the types of a request without checking them.
func typesOf(given []string) []event.Type {
	out := make([]event.Type, len(given))
	for i, t := range given {
		out[i] = event.Type(t)
	}
	return out
}
