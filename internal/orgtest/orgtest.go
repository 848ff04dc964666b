// Package orgtest sets up the tests of the transports: a real SQLite store with two orgs, the
// services over it, and keys for any principal. It must not know a transport.
package orgtest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/store"
)

// World has the orgs acme and globex, without members.
type World struct {
	testing.TB
	Store     *store.Store
	Operator  *identity.Operator
	Auth      *identity.Authenticator
	Agents    *agent.Registry
	Directory *agent.Directory
	Catalogue *agent.Catalogue
	Tasks     *dispatch.Service
	Logs      *Log
}

// New returns a world that is closed at the end of the test.
func New(tb testing.TB, edit ...func(*dispatch.Options)) *World {
	tb.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, store.Options{Dir: EmptyDir(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	directory := agent.NewDirectory(st.Agents(), Now)
	w := &World{
		TB: tb, Store: st, Logs: &Log{},
		Operator:  identity.NewOperator(st.IdentityStores(), Now, NewID),
		Auth:      identity.NewAuthenticator(st.Identity(), Now),
		Agents:    agent.NewRegistry(st.Agents(), directory, agent.Quotas{}, Now),
		Directory: directory, Catalogue: agent.NewCatalogue(st.Agents(), Now),
	}
	o := dispatch.Options{
		Stores: st.DispatchStores(), Directory: dispatch.AgentDirectory(directory), Now: Now, NewID: NewID, Node: "node-1",
		Deliveries: delivery.New(delivery.Options{Store: st.Deliveries()}),
	}
	for _, e := range edit {
		e(&o)
	}
	w.Tasks = dispatch.New(o)
	tb.Cleanup(func() {
		w.Tasks.Stop()
		_ = st.Close()
	})
	for _, org := range []string{"acme", "globex"} {
		if _, err := w.Operator.CreateOrg(ctx, org, ""); err != nil {
			tb.Fatal(err)
		}
	}
	return w
}

// Router are the options of a router that knows the world's keys.
func (w *World) Router() httpx.Options {
	return httpx.Options{Authenticator: w.Auth, Logger: slog.New(slog.NewTextHandler(w.Logs, nil))}
}

// Agent registers an agent.
func (w *World) Agent(a agent.Agent) {
	w.Helper()
	if _, err := agent.NewOperator(w.Agents).Create(context.Background(), a); err != nil {
		w.Fatal(err)
	}
}

// EditAgent changes an agent as an admin of its org.
func (w *World) EditAgent(org, id string, e agent.Edit) {
	w.Helper()
	if _, err := w.Agents.Update(context.Background(), w.Admin(org, identity.ManageAgents), id, e); err != nil {
		w.Fatal(err)
	}
}

// Admin authorizes an admin of the org for an action.
func (w *World) Admin(org string, action identity.Action) identity.Access {
	w.Helper()
	admin := identity.Principal{Org: org, Kind: identity.User, ID: "admin"}
	a, err := identity.Authorize(&identity.Caller{Principal: admin, Scopes: identity.AllScopes}, org, action)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// Key creates a key with the scopes, and its principal if it does not exist.
func (w *World) Key(org, ref string, scopes ...identity.Scope) (secret, id string) {
	w.Helper()
	ctx := context.Background()
	p, err := identity.ParseRef(org, ref)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.Store.Identity().Member(ctx, p); err != nil {
		if _, err := w.Operator.CreateMember(ctx, p, "", false); err != nil {
			w.Fatal(err)
		}
	}
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	k, secret, err := w.Operator.CreateKey(ctx, identity.KeyRequest{Principal: p, Scopes: names})
	if err != nil {
		w.Fatal(err)
	}
	return secret, k.ID
}

// OrgAdmin returns the service of the orgs' admins, without quotas.
func (w *World) OrgAdmin() *identity.OrgAdmin {
	return identity.NewOrgAdmin(identity.OrgAdminOptions{
		Stores: w.Store.IdentityStores(), Agents: w.Directory, Now: Now, NewID: NewID,
	})
}

// OAuth returns the service of OAuth clients and grants, without a limit of clients.
func (w *World) OAuth() *oauth.Service {
	return oauth.New(oauth.Options{Stores: w.Store.OAuthStores(), Agents: w.Directory, Now: Now, NewID: NewID})
}

// SetPassword gives a user a password, as if the user had chosen it.
func SetPassword(tb testing.TB, st *store.Store, a *account.Accounts, p identity.Principal, password string) {
	tb.Helper()
	ctx := context.Background()
	hash, err := a.HashPassword(ctx, p, password)
	if err != nil {
		tb.Fatal(err)
	}
	e := identity.NewEntry(ctx, Now(), p.Org, account.PasswordChange, p.Ref(), "")
	if _, err := st.Accounts().SetPassword(ctx, p, hash, Now(), e); err != nil {
		tb.Fatal(err)
	}
}

// NewID returns an id in the format of the server.
func NewID(prefix string) string { return prefix + strings.ToLower(ulid.Make().String()) }

// Now is the server's clock.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Log collects log output. It is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns the output so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
