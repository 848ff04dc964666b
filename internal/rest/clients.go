package rest

import (
	"context"
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

const (
	clientsPath = "/api/v1/orgs/{org}/clients"
	clientPath  = clientsPath + "/{id}"

	rotateClientPath = clientPath + "/rotate"
)

// ClientPath is the path of one client.
type ClientPath struct {
	OrgPath
	ID string `path:"id" pattern:"^client-[0-9a-z]{1,57}$" doc:"The client's id." example:"client-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

func (a *api) registerClients() {
	register(a, operation{
		id: "list-clients", method: http.MethodGet, path: clientsPath, tag: tagClients,
		summary: "List the clients of the org", action: identity.ReadClients,
		description: "Newest first, without their secrets. Programs that registered themselves belong to no org and are not among them." + needsAdmin,
	}, a.listClients)
	register(a, operation{
		id: "create-client", method: http.MethodPost, path: clientsPath, tag: tagClients, status: http.StatusCreated,
		summary: "Register a client", action: identity.ManageClients, audit: oauth.ClientCreate, errors: []int{http.StatusConflict},
		description: "Only members of the org can allow it anything, and it may ask for svc:admin:admin if that is among its scopes; what it gets is never more than the person has. " +
			"The secret, if it has one, is in this answer only, and in that to the same request with the same Idempotency-Key and credentials; the server keeps a hash of it. 409: the org has 1000 clients." + needsAdmin,
	}, a.createClient)
	register(a, operation{
		id: "get-client", method: http.MethodGet, path: clientPath, tag: tagClients,
		summary: "Get a client", action: identity.ReadClients, validID: oauth.ValidClientID,
		cacheable: true, description: "Without its secret." + needsAdmin,
	}, a.getClient)
	register(a, operation{
		id: "change-client", method: http.MethodPatch, path: clientPath, tag: tagClients,
		summary: "Change a client", action: identity.ManageClients, validID: oauth.ValidClientID, audit: oauth.ClientUpdate,
		errors: []int{http.StatusPreconditionFailed},
		description: "Changes the fields that are given; what people allowed it stays. Tokens that carry a scope which it may not have any more are refused on all nodes within seconds, and a " +
			"refresh yields what is left. More than people allowed it gets only by asking them again. The method cannot be changed: with another it is another client." + needsAdmin,
	}, a.changeClient)
	register(a, operation{
		id: "rotate-client", method: http.MethodPost, path: rotateClientPath, tag: tagClients,
		summary: "Replace the secret of a client", action: identity.ManageClients, validID: oauth.ValidClientID, audit: oauth.ClientRotate,
		errors: []int{http.StatusConflict},
		description: "The client stays what it is, with all that people allowed it. The old secret works until the overlap ends, and one that is older still ends at once. 409: it has no secret, because its method is none. " +
			"The new secret is in this answer only, and in that to the same request with the same Idempotency-Key and credentials; the server keeps a hash of it." + needsAdmin,
	}, a.rotateClient)
	a.huma.OpenAPI().Paths[rotateClientPath].Post.RequestBody.Required = false
	register(a, operation{
		id: "delete-client", method: http.MethodDelete, path: clientPath, tag: tagClients,
		summary: "Delete a client", action: identity.ManageClients, validID: oauth.ValidClientID, audit: oauth.ClientDelete,
		description: "With all that people allowed it: its tokens stop working on all nodes within seconds. Answers with the client as it was; again: 404." + needsAdmin,
	}, a.deleteClient)
}

type listClientsInput struct {
	OrgPath
	Cursor string      `query:"cursor" doc:"Continues the list: next_cursor of the page before."`
	Limit  manageLimit `query:"limit" doc:"Results on a page."`
}

type listClientsOutput struct{ Body OAuthClientList }

func (a *api) listClients(ctx context.Context, c *call, in *listClientsInput) (*listClientsOutput, error) {
	if in.Cursor != "" && !oauth.ValidClientID(in.Cursor) {
		return nil, errs.InvalidFields(badCursor)
	}
	n := in.Limit.size()
	list, err := a.clients.Clients(ctx, c.Access, oauth.ClientFilter{Before: in.Cursor, Limit: n + 1})
	if err != nil {
		return nil, err
	}
	out := &listClientsOutput{}
	if len(list) > n {
		list = list[:n]
		out.Body.NextCursor = &list[n-1].ID
	}
	out.Body.Clients = make([]OAuthClient, len(list))
	for i := range list {
		out.Body.Clients[i] = clientOf(&list[i])
	}
	return out, nil
}

type createClientInput struct {
	OrgPath
	OnceHeader
	Body payload[OAuthClientCreation]
}

type newClientOutput struct {
	Location string `header:"Location" doc:"Where the new client is."`
	ETag     string `header:"ETag" doc:"The version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     OAuthClientWithSecret
}

func (a *api) createClient(ctx context.Context, c *call, in *createClientInput) (*newClientOutput, error) {
	b := &in.Body.value
	c.target = b.Name
	r := oauth.ClientRequest{Name: b.Name, RedirectURIs: b.RedirectURIs, Scopes: b.Scopes, Method: oauth.Method(deref(b.Method))}
	wrong := notEmpty("method", b.Method)
	if b.Scopes != nil && len(b.Scopes) == 0 {
		wrong = append(wrong, errs.Field{Path: errs.At("scopes"), Message: "must not be empty; leave it out for the default"})
	}
	if err := in.Body.check(r.Validate(), wrong...); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	client, secret, err := a.clients.CreateClient(ctx, c.Access, r)
	if err != nil {
		return nil, err
	}
	return &newClientOutput{
		Location: c.request.URL.EscapedPath() + "/" + client.ID, Replayed: replayed(once.Replayed()),
		ETag: clientTag(&client),
		Body: OAuthClientWithSecret{Secret: orNull(secret), OAuthClient: clientOf(&client)},
	}, nil
}

type getClientInput struct {
	ClientPath
	IfNoneMatch string `header:"If-None-Match" doc:"The ETag you hold: 304 if it is still right."`
}

type getClientOutput struct {
	Status       int
	ETag         string `header:"ETag" doc:"The version of the record, for If-Match and If-None-Match."`
	CacheControl string `header:"Cache-Control" doc:"Keep it, but ask each time."`
	Body         OAuthClient
}

func (a *api) getClient(ctx context.Context, c *call, in *getClientInput) (*getClientOutput, error) {
	client, err := a.clients.OrgClient(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	out := &getClientOutput{Status: http.StatusOK, ETag: clientTag(&client), CacheControl: revalidate}
	if noneMatch(c.request.Header, out.ETag) {
		out.Status = http.StatusNotModified
		return out, nil
	}
	out.Body = clientOf(&client)
	return out, nil
}

type changeClientInput struct {
	ClientPath
	OnceHeader
	IfMatch string `header:"If-Match" doc:"The ETag you decided on: 412 if the record has changed since."`
	Body    payload[OAuthClientPatch]
}

type changeClientOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     OAuthClient
}

func (a *api) changeClient(ctx context.Context, c *call, in *changeClientInput) (*changeClientOutput, error) {
	b := &in.Body.value
	e := oauth.ClientEdit{Name: b.Name, RedirectURIs: b.RedirectURIs, Scopes: b.Scopes}
	invalid := e.Validate()
	if e.Empty() && len(in.Body.broken) > 0 {
		invalid = nil // it is not empty: it could not be read
	}
	if err := in.Body.check(invalid); err != nil {
		return nil, err
	}
	var err error
	if e.IfVersion, err = ifMatch(c.request.Header, func() (int64, error) {
		client, err := a.clients.OrgClient(ctx, c.Access, in.ID)
		return client.Version, err
	}); err != nil {
		return nil, err
	}
	if e.Once, err = c.once(b); err != nil {
		return nil, err
	}
	done, err := a.clients.UpdateClient(ctx, c.Access, in.ID, e)
	if err != nil {
		return nil, err
	}
	return &changeClientOutput{ETag: clientTag(&done.Client), Replayed: replayed(done.Replayed), Body: clientOf(&done.Client)}, nil
}

// clientTag names the bytes of a client; everyone sees the same.
func clientTag(c *oauth.Client) string { return etag(c.Version, "") }

type rotateClientInput struct {
	ClientPath
	OnceHeader
	Body payload[OAuthClientRotation] // may be left out
}

type rotateClientOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     OAuthClientWithSecret
}

func (a *api) rotateClient(ctx context.Context, c *call, in *rotateClientInput) (*rotateClientOutput, error) {
	overlap := seconds(or(in.Body.value.OverlapSeconds, 0))
	if err := in.Body.check(identity.CheckOverlap(overlap)); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, &in.Body.value)
	if err != nil {
		return nil, err
	}
	client, secret, err := a.clients.RotateClient(ctx, c.Access, in.ID, overlap)
	if err != nil {
		return nil, err
	}
	return &rotateClientOutput{ETag: clientTag(&client), Replayed: replayed(once.Replayed()), Body: OAuthClientWithSecret{Secret: &secret, OAuthClient: clientOf(&client)}}, nil
}

type clientInput struct{ ClientPath }

type clientOutput struct{ Body OAuthClient }

func (a *api) deleteClient(ctx context.Context, c *call, in *clientInput) (*clientOutput, error) {
	client, err := a.clients.DeleteClient(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	return &clientOutput{Body: clientOf(&client)}, nil
}
