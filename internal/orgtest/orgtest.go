// Package orgtest is what the tests of every transport stand on: a real SQLite store
// with two orgs, the services above it, and keys for whoever a test needs.
package orgtest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/store"
)

// World has the orgs acme and globex, and nobody in them.
type World struct {
	testing.TB
	Store    *store.Store
	Operator *identity.Operator
	Auth     *identity.Authenticator
	Agents   *agent.Registry
	Tasks    *dispatch.Service
	Logs     *Log
}

// New makes a world that ends with the test.
func New(tb testing.TB, edit ...func(*dispatch.Options)) *World {
	tb.Helper()
	ctx := context.Background()
	dir := tb.TempDir()
	if err := copyEmpty(dir); err != nil {
		tb.Fatal(err)
	}
	st, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	w := &World{
		TB: tb, Store: st, Operator: identity.NewOperator(st.Identity(), Now, NewID), Auth: identity.NewAuthenticator(st.Identity(), Now),
		Agents: agent.NewRegistry(st.Agents(), Now), Logs: &Log{},
	}
	o := dispatch.Options{Stores: st.Dispatch(), Directory: directory{w.Agents}, Now: Now, NewID: NewID, Node: "node-1"}
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

// emptyStore is what a data folder holds whose store has its schema and nothing else: to
// migrate takes most of the time that a small test needs.
var emptyStore = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "parley-orgtest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	st, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := st.Close(); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	files := map[string][]byte{}
	for _, f := range list {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		files[f.Name()] = b
	}
	return files, err
})

func copyEmpty(dir string) error {
	files, err := emptyStore()
	for name, b := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
	}
	return err
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

// EditAgent changes an agent as an admin of its org does.
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

// Key makes the principal if need be, and a key with the scopes.
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

// NewID makes ids as the server does.
func NewID(prefix string) string { return prefix + strings.ToLower(ulid.Make().String()) }

// Now is the server's clock.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// directory shows the registry to the task service.
type directory struct{ agents *agent.Registry }

// Target implements dispatch.Directory.
func (d directory) Target(ctx context.Context, org, id string) (dispatch.Target, *dispatch.Target, error) {
	a, other, err := d.agents.Reach(ctx, org, id)
	if err != nil || other == nil {
		return targetOf(&a), nil, err
	}
	hidden := targetOf(other)
	return targetOf(&a), &hidden, nil
}

// Own implements dispatch.Directory.
func (d directory) Own(ctx context.Context, org, id string) (dispatch.Target, error) {
	a, err := d.agents.Own(ctx, org, id)
	if err == nil && a.Disabled {
		err = errs.ErrNotFound
	}
	return targetOf(&a), err
}

func targetOf(a *agent.Agent) dispatch.Target {
	return dispatch.Target{ID: a.ID, Org: a.Org, Public: a.Public}
}

// Log keeps what is logged, by several goroutines at once.
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

// String returns what was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
