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
		description: "Newest first, without secrets. Clients that registered themselves belong to no org and are not " +
			"listed." +
			needsAdmin,
	}, a.listClients)
	register(a, operation{
		id: "create-client", method: http.MethodPost, path: clientsPath, tag: tagClients, status: http.StatusCreated,
		summary: "Register a client", action: identity.ManageClients, audit: oauth.ClientCreate,
		errors: []int{http.StatusConflict},
		description: "Only members of the org can authorize it. It may ask for svc:admin:admin if that is among its " +
			"scopes, but never gets more than the user has. 409 if the org has 1000 clients." + onceOnly + needsAdmin,
	}, a.createClient)
	register(a, operation{
		id: "get-client", method: http.MethodGet, path: clientPath, tag: tagClients,
		summary: "Get a client", action: identity.ReadClients, validID: oauth.ValidClientID,
		cacheable: true, description: "Without the secret." + needsAdmin,
	}, a.getClient)
	register(a, operation{
		id: "change-client", method: http.MethodPatch, path: clientPath, tag: tagClients,
		summary: "Change a client", action: identity.ManageClients, validID: oauth.ValidClientID, audit: oauth.ClientUpdate,
		errors: []int{http.StatusPreconditionFailed},
		description: "Changes the given fields; grants of users stay. If a scope is removed, tokens with it are rejected " +
			"on all nodes within seconds, and a refresh returns the remaining scopes. If a scope is added, users must " +
			"authorize it again. The method cannot be changed; register another client instead." + needsAdmin,
	}, a.changeClient)
	register(a, operation{
		id: "rotate-client", method: http.MethodPost, path: rotateClientPath, tag: tagClients,
		summary: "Rotate the secret of a client", action: identity.ManageClients, validID: oauth.ValidClientID,
		audit: oauth.ClientRotate, errors: []int{http.StatusConflict},
		description: "The client keeps its id and grants. The current secret works until the overlap ends; an older one " +
			"ends at once. 409 if the client has no secret, because its method is none." + onceOnly + needsAdmin,
	}, a.rotateClient)
	a.huma.OpenAPI().Paths[rotateClientPath].Post.RequestBody.Required = false
	register(a, operation{
		id: "delete-client", method: http.MethodDelete, path: clientPath, tag: tagClients,
		summary: "Delete a client", action: identity.ManageClients, validID: oauth.ValidClientID, audit: oauth.ClientDelete,
		description: "Deletes the client with all grants: its tokens stop working on all nodes within seconds. Returns the " +
			"deleted client; 404 if repeated." + needsAdmin,
	}, a.deleteClient)
}

type listClientsInput struct {
	OrgPath
	Cursor string      `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
	Limit  manageLimit `query:"limit" doc:"Page size."`
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
	Location string `header:"Location" doc:"URL of the new client."`
	ETag     string `header:"ETag" doc:"The version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     OAuthClientWithSecret
}

func (a *api) createClient(ctx context.Context, c *call, in *createClientInput) (*newClientOutput, error) {
	b := &in.Body.value
	c.target = b.Name
	r := oauth.ClientRequest{
		Name: b.Name, RedirectURIs: b.RedirectURIs, Scopes: b.Scopes, Method: oauth.Method(deref(b.Method)),
	}
	wrong := notEmpty("method", b.Method)
	if b.Scopes != nil && len(b.Scopes) == 0 {
		wrong = append(wrong, errs.Field{
			Path: errs.At("scopes"), Message: "must not be empty; leave it out to use the default",
		})
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
	IfNoneMatch string `header:"If-None-Match" doc:"ETag that you have. 304 if it is current."`
}

type getClientOutput struct {
	Status       int
	ETag         string `header:"ETag" doc:"The version of the record, for If-Match and If-None-Match."`
	CacheControl string `header:"Cache-Control" doc:"Responses may be stored but must be revalidated."`
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
	IfMatch string `header:"If-Match" doc:"ETag of the version you read. 412 if the record has changed since."`
	Body    payload[OAuthClientPatch]
}

type changeClientOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     OAuthClient
}

func (a *api) changeClient(ctx context.Context, c *call, in *changeClientInput) (*changeClientOutput, error) {
	b := &in.Body.value
	e := oauth.ClientEdit{Name: b.Name, RedirectURIs: b.RedirectURIs, Scopes: b.Scopes}
	invalid := e.Validate()
	if e.Empty() && len(in.Body.broken) > 0 {
		invalid = nil // the edit is empty only because its fields could not be decoded
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
	return &changeClientOutput{
		ETag: clientTag(&done.Client), Replayed: replayed(done.Replayed), Body: clientOf(&done.Client),
	}, nil
}

// clientTag returns the ETag of a client. All callers see the same bytes.
func clientTag(c *oauth.Client) string { return etag(c.Version, "") }

type rotateClientInput struct {
	ClientPath
	OnceHeader
	Body payload[OAuthClientRotation] // optional
}

type rotateClientOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
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
	return &rotateClientOutput{
		ETag: clientTag(&client), Replayed: replayed(once.Replayed()),
		Body: OAuthClientWithSecret{Secret: &secret, OAuthClient: clientOf(&client)},
	}, nil
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
