package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// clientOne is the page of a client.
type clientOne struct {
	Client   clientRow
	Secret   *secret // only in the response that created it
	Server   string  // URL of this server, for examples
	Typed    typedClient
	Scopes   scopeForm
	Overlaps []overlap
	Rotates  bool // it has a secret
	OldWorks bool // the previous secret still works
}

func (v *visit) clientPage() error {
	_, c, err := v.clientInPath(identity.ReadClients)
	if err != nil {
		return err
	}
	return v.showClient(http.StatusOK, c, nil, nil, nil)
}

// clientInPath returns the client in the path, if the member may do the action.
func (v *visit) clientInPath(action identity.Action) (identity.Access, oauth.Client, error) {
	a, err := v.access(action)
	if err != nil {
		return a, oauth.Client{}, err
	}
	id := v.r.PathValue("id")
	if !oauth.ValidClientID(id) {
		return a, oauth.Client{}, errs.ErrNotFound
	}
	c, err := v.Programs.OrgClient(v.r.Context(), a, id)
	return a, c, err
}

// showClient shows a client. typed has the values of a form that was rejected.
func (v *visit) showClient(status int, c oauth.Client, typed *typedClient, s *secret, problem error) error {
	out := clientOne{
		Client: newClientRow(&c), Secret: s, Server: v.PublicURL, Overlaps: overlaps(), Rotates: c.Method != oauth.Public,
		OldWorks: v.Now().Before(c.OldSecretExpires),
	}
	out.Typed = typedClient{Name: c.Name, Redirects: strings.Join(c.RedirectURIs, "\n"), Scopes: scopeNames(c.Scopes)}
	if typed != nil {
		out.Typed = *typed
	}
	var err error
	if out.Scopes, err = v.newScopeForm(out.Typed.Scopes, identity.A2AServe); err != nil {
		return err
	}
	return renderForm(v, status, "client", c.Name, out, problem)
}

// changeClient changes a client, unless it has changed since the form was shown.
func (v *visit) changeClient() error {
	a, c, err := v.clientInPath(identity.ManageClients)
	if err != nil {
		return v.audited(oauth.ClientUpdate, v.r.PathValue("id"), err)
	}
	typed := v.typedClient()
	uris := typed.uris()
	edit := oauth.ClientEdit{Name: &typed.Name, RedirectURIs: &uris, Scopes: &typed.Scopes}
	version, err := strconv.ParseInt(v.value("version"), 10, 64)
	if err != nil {
		return errIncomplete
	}
	edit.IfVersion = &version
	if edit.Once, err = v.once(); err == nil {
		if err = together(edit.Validate(), typed.check()); err == nil {
			_, err = v.Programs.UpdateClient(v.r.Context(), a, c.ID, edit)
		}
	}
	switch {
	case err == nil:
		return v.done(v.base()+"/clients/"+c.ID, "The client was changed.")
	case errs.KindOf(err) == errs.Stale:
		return v.showClient(http.StatusOK, c, nil, nil, v.audited(oauth.ClientUpdate, c.ID, err))
	}
	return v.showClient(http.StatusOK, c, &typed, nil, v.audited(oauth.ClientUpdate, c.ID, err))
}

// rotateClient rotates the secret of a client, and shows the new one once.
func (v *visit) rotateClient() error {
	a, c, err := v.clientInPath(identity.ManageClients)
	if err != nil {
		return v.audited(oauth.ClientRotate, v.r.PathValue("id"), err)
	}
	d, err := v.overlapOf()
	if err != nil {
		return v.showClient(http.StatusOK, c, nil, nil, v.audited(oauth.ClientRotate, c.ID, err))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	next, value, err := v.Programs.RotateClient(ctx, a, c.ID, d)
	switch {
	case sealed(err):
		next = c // already rotated by the first submission
	case err != nil:
		return v.showClient(http.StatusOK, c, nil, nil, v.audited(oauth.ClientRotate, c.ID, err))
	}
	return v.showClient(http.StatusCreated, next, nil, v.newSecret("client", value, once), nil)
}

// deleteClient deletes a client with all grants of users.
func (v *visit) deleteClient() error {
	a, c, err := v.clientInPath(identity.ManageClients)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return v.done(v.base()+"/clients", refusal("This client no longer exists."))
	}
	if err != nil {
		return v.audited(oauth.ClientDelete, v.r.PathValue("id"), err)
	}
	if _, err := v.Programs.DeleteClient(v.r.Context(), a, c.ID); err != nil {
		return v.audited(oauth.ClientDelete, c.ID, err)
	}
	return v.done(v.base()+"/clients", "The client “"+c.Name+"” was deleted. Its tokens stop working within seconds.")
}
