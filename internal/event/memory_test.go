package event

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// memory is a Store for tests of the service. The tests of real stores are in package storetest.
type memory struct {
	mu    sync.Mutex
	logs  map[string][]Event
	kept  int64 // first number of every log; 0: all are kept
	reads int
	fails error
	// index has the orgs that were indexed, in order. Each call leaves one piece less.
	index  []string
	pieces int
	window int64 // numbers that a page covers; 0: all
	// read, if set, is called once, after a page was read.
	read func()
}

func (m *memory) Page(ctx context.Context, org string, q Query) (Page, error) {
	m.mu.Lock()
	read := m.read
	m.read = nil
	defer func() {
		m.mu.Unlock()
		if read != nil {
			read()
		}
	}()
	m.reads++
	if err := cmp.Or(m.fails, ctx.Err()); err != nil {
		return Page{}, err
	}
	log, kept := m.logs[org], max(m.kept, 1)
	p := Page{Head: int64(len(log)), Kept: kept, Last: max(q.After, kept-1)}
	if p.Missed = q.After > 0 && q.After < kept-1 || q.After > p.Head; p.Missed {
		p.Last = kept - 1
	}
	end := p.Head
	if m.window > 0 {
		end = min(end, p.Last+m.window)
	}
	for p.Last < end && len(p.Events) < q.Limit {
		e := log[p.Last]
		p.Last++
		if q.Match(&e) {
			p.Events = append(p.Events, e)
		}
	}
	return p, nil
}

func (m *memory) PageBack(_ context.Context, org string, q BackQuery) (BackPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	log, kept := m.logs[org], max(m.kept, 1)
	p := BackPage{First: int64(len(log)) + 1, Kept: kept}
	if q.Before > 0 {
		p.First = min(p.First, q.Before)
	}
	end := kept
	if m.window > 0 {
		end = max(end, p.First-m.window)
	}
	for p.First > end && len(p.Events) < q.Limit {
		p.First--
		if e := log[p.First-1]; q.Match(&e) {
			p.Events = append(p.Events, e)
		}
	}
	return p, m.fails
}

func (m *memory) Head(_ context.Context, org string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.logs[org])), m.fails
}

func (m *memory) FirstSince(_ context.Context, org string, since time.Time) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.logs[org] {
		if e.Seq >= m.kept && !e.At.Before(since) {
			return e.Seq, m.fails
		}
	}
	return 0, m.fails
}

func (m *memory) Expire(context.Context, time.Time) (int, error) { return 0, nil }

func (m *memory) IndexSubjects(_ context.Context, org string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index = append(m.index, org)
	m.pieces = max(m.pieces-1, 0)
	return m.pieces, nil
}

// add appends an event.
func (m *memory) add(org string, t Type, scope Scope, data string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := New(org, t, time.Now(), "proposal:p", "user:ada", scope, json.RawMessage(data))
	e.Seq = int64(len(m.logs[org])) + 1
	m.logs[org] = append(m.logs[org], e)
}

// world is a service over a memory.
type world struct {
	*Service
	store    *memory
	stopping chan struct{}
	errors   chan error
}

func newWorld() *world {
	w := &world{store: &memory{logs: map[string][]Event{}}, stopping: make(chan struct{}), errors: make(chan error, 100)}
	w.Service = NewService(Options{
		Store: w.store, Now: time.Now, Stopping: w.stopping, OnError: func(err error) { w.errors <- err },
	})
	return w
}

// emit appends an event that all readers see, and hints.
func (w *world) emit(org string) {
	w.store.add(org, ProposalVoted, Members, `{}`)
	w.Changed(org)
}

// reader returns the Access of a user.
func reader(tb testing.TB, org string, scopes ...identity.Scope) identity.Access {
	tb.Helper()
	ada := identity.Principal{Org: org, Kind: identity.User, ID: "ada"}
	scopes = append(scopes, identity.TasksRead)
	a, err := identity.Authorize(&identity.Caller{Principal: ada, Scopes: scopes}, org, identity.ReadEvents)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}
