package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

func (p *Pages) mountClients() {
	p.orgPages(map[string]handler{
		"GET /clients":              (*visit).clientsPage,
		"GET /clients/new":          (*visit).newClientPage,
		"POST /clients":             (*visit).createClient,
		"GET /clients/{id}":         (*visit).clientPage,
		"POST /clients/{id}":        (*visit).changeClient,
		"POST /clients/{id}/rotate": (*visit).rotateClient,
		"POST /clients/{id}/delete": (*visit).deleteClient,
	})
}

// clientsView is the list of the org's clients.
type clientsView struct {
	Rows  []clientRow
	Pager cursorLinks
}

// clientRow is a client in a list.
type clientRow struct {
	oauth.Client
	May  may
	Kind string // client authentication, in words
}

func newClientRow(c *oauth.Client) clientRow {
	return clientRow{Client: *c, May: inWords(c.Scopes), Kind: methodWords[c.Method].Name}
}

// method is a client authentication method.
type method struct {
	Value      oauth.Method
	Name, Text string
	Checked    bool
}

var methodWords = map[oauth.Method]method{
	oauth.Public: {
		Name: "no secret",
		Text: "For programs on people's own machines: command lines, desktop and mobile apps, pages without a server.",
	},
	oauth.SecretBasic: {Name: "secret in a header", Text: "For programs on a server; the usual choice."},
	oauth.SecretPost:  {Name: "secret in the form", Text: "For programs on a server whose library supports only this."},
}

// clientsPage lists the clients of the org, newest first.
func (v *visit) clientsPage() error {
	a, err := v.access(identity.ReadClients)
	if err != nil {
		return err
	}
	f := oauth.ClientFilter{Before: v.r.URL.Query().Get("cursor"), Limit: adminPerPage + 1}
	if f.Before != "" && !oauth.ValidClientID(f.Before) {
		return fieldError("cursor", "is not a cursor of this list; open the list again")
	}
	list, err := v.Programs.Clients(v.r.Context(), a, f)
	if err != nil {
		return err
	}
	next := ""
	if len(list) > adminPerPage {
		list = list[:adminPerPage]
		next = list[adminPerPage-1].ID
	}
	out := clientsView{Pager: v.cursorPager(next)}
	for i := range list {
		out.Rows = append(out.Rows, newClientRow(&list[i]))
	}
	return render(v, http.StatusOK, "clients", "Clients", out)
}

// typedClient has the values of the form of a client.
type typedClient struct {
	Name      string
	Redirects string // one URI per line
	Scopes    []string
	Method    oauth.Method
}

func (v *visit) typedClient() typedClient {
	return typedClient{
		Name: v.value("name"), Redirects: v.text("redirect_uris"), Scopes: v.formScopes(),
		Method: oauth.Method(v.value("method")),
	}
}

// uris returns the redirect URIs without empty lines.
func (t *typedClient) uris() []string {
	var out []string
	for line := range strings.Lines(t.Redirects) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// check rejects values that the services would replace by a default.
func (t *typedClient) check() error {
	if !anyRight(t.Scopes) {
		return fieldError("scopes", "choose at least one right")
	}
	return nil
}

// newClientView is the form for a new client.
type newClientView struct {
	Typed   typedClient
	Scopes  scopeForm
	Methods []method
}

func (v *visit) newClientPage() error {
	return v.showNewClient(typedClient{Scopes: scopeNames(oauth.Registrable), Method: oauth.Public}, nil)
}

func scopeNames(scopes identity.Scopes) []string {
	out := make([]string, len(scopes))
	for i, s := range scopes {
		out[i] = string(s)
	}
	return out
}

func (v *visit) showNewClient(typed typedClient, problem error) error {
	if _, err := v.access(identity.ManageClients); err != nil {
		return err
	}
	out := newClientView{Typed: typed}
	for _, m := range oauth.Methods {
		words := methodWords[m]
		words.Value, words.Checked = m, m == typed.Method
		out.Methods = append(out.Methods, words)
	}
	var err error
	if out.Scopes, err = v.newScopeForm(typed.Scopes, identity.A2AServe); err != nil {
		return err
	}
	return renderForm(v, http.StatusOK, "client_new", "Register a client", out, problem)
}

// createClient registers a client, and shows its secret once if it has one.
func (v *visit) createClient() error {
	a, err := v.access(identity.ManageClients)
	typed := v.typedClient()
	if err != nil {
		return v.audited(oauth.ClientCreate, typed.Name, err)
	}
	r := oauth.ClientRequest{Name: typed.Name, RedirectURIs: typed.uris(), Scopes: typed.Scopes, Method: typed.Method}
	if err := together(r.Validate(), typed.check()); err != nil {
		return v.showNewClient(typed, v.audited(oauth.ClientCreate, typed.Name, err))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	c, value, err := v.Programs.CreateClient(ctx, a, r)
	if err != nil && !sealed(err) {
		return v.showNewClient(typed, v.audited(oauth.ClientCreate, typed.Name, err))
	}
	if c.Method == oauth.Public {
		return v.done(v.base()+"/clients/"+c.ID, "The client was registered. It needs only its client id, and has no secret.")
	}
	return v.showClient(http.StatusCreated, c, nil, v.newSecret("client", value, once), nil)
}

// together joins the errors of fields.
func together(list ...error) error {
	var fields []errs.Field
	for _, err := range list {
		if err != nil {
			fields = append(fields, errs.As(err).Fields...)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	slices.SortStableFunc(fields, func(a, b errs.Field) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return errs.InvalidFields(fields...)
}
