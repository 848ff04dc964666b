package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

func anyURL(string) error { return nil }

func valid() Webhook {
	return Webhook{Org: "acme", ID: "hook-1", URL: "https://hooks.example/x", State: Active, Format: Standard, Version: 3}
}

func TestFieldsAreChecked(t *testing.T) {
	t.Parallel()
	refuse := func(string) error { return errors.New("must not point to this machine") }
	for _, c := range []struct {
		name string
		edit func(*Webhook)
		url  func(string) error
		want string // in the error; empty: none
	}{
		{"plain", func(*Webhook) {}, anyURL, ""},
		{"full", func(w *Webhook) {
			w.Types, w.Categories, w.Priorities = []event.Type{event.ProposalOpened}, []string{"security"}, []string{"high"}
			w.Description, w.Format, w.State = "To the chat", Slack, Paused
		}, anyURL, ""},
		{"guarded URL", func(*Webhook) {}, refuse, "url must not point to this machine"},
		{"relative URL", func(w *Webhook) { w.URL = "/x" }, anyURL, "url must be an absolute URL"},
		{"other scheme", func(w *Webhook) { w.URL = "ftp://a.example/" }, anyURL, "url must be an absolute URL"},
		{"password", func(w *Webhook) { w.URL = "https://a:b@a.example/" }, anyURL, "url must not contain a user name"},
		{"fragment", func(w *Webhook) { w.URL = "https://a.example/#x" }, anyURL, "url must not have a fragment"},
		{"empty fragment", func(w *Webhook) { w.URL = "https://a.example/#" }, anyURL, "url must not have a fragment"},
		{"port 0", func(w *Webhook) { w.URL = "https://a.example:0/" }, anyURL, "url must have a port from 1 to 65535"},
		{"high port", func(w *Webhook) { w.URL = "https://[::1]:65536/" }, anyURL, "url must have a port from 1 to 65535"},
		{"huge port", func(w *Webhook) { w.URL = "https://a.example:99999999999999999999/" }, anyURL, "url must have a port"},
		{"highest port", func(w *Webhook) { w.URL = "https://a.example:65535/" }, anyURL, ""},
		{"escaped #", func(w *Webhook) { w.URL = "https://a.example/%23" }, anyURL, ""},
		{"space", func(w *Webhook) { w.URL = "https://a.example/a b" }, anyURL, "url must consist of ASCII"},
		{"long URL", func(w *Webhook) { w.URL += strings.Repeat("x", MaxURL) }, anyURL, "url must have at most 2000"},
		{"longest URL", func(w *Webhook) { w.URL += strings.Repeat("x", MaxURL-len(w.URL)) }, anyURL, ""},
		{"long description", func(w *Webhook) { w.Description = strings.Repeat("ä", 501) }, anyURL, "description"},
		{"longest description", func(w *Webhook) { w.Description = strings.Repeat("ä", 500) }, anyURL, ""},
		{"two lines", func(w *Webhook) { w.Description = "a\nb" }, anyURL, "description must be one line"},
		{"state", func(w *Webhook) { w.State = "off" }, anyURL, "state must be active or paused"},
		{"format", func(w *Webhook) { w.Format = "xml" }, anyURL, "format must be standard, cloudevents or slack"},
		{"type", func(w *Webhook) { w.Types = []event.Type{event.KeyCreated, "x"} }, anyURL, `types[1] is "x"`},
		{"ping", func(w *Webhook) { w.Types = []event.Type{Ping} }, anyURL, `types[0] is "webhook.ping"`},
		{"category", func(w *Webhook) { w.Categories = []string{"x"} }, anyURL, `categories[0] is "x"; must be one of`},
		{"priority", func(w *Webhook) { w.Priorities = []string{"top"} }, anyURL, `priorities[0] is "top"; must be one of`},
	} {
		w := valid()
		c.edit(&w)
		err := w.check(c.url)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: error = %v, want none", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || errs.KindOf(err) != errs.Invalid):
			t.Errorf("%s: error = %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"hook-01k5": true, "hook-": false, "key-1": false, "hook-A": false, "hook-a/b": false,
		"hook-" + strings.Repeat("a", 60): false,
	} {
		if ValidID(id) != want {
			t.Errorf("ValidID(%q) = %v, want %v", id, !want, want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// A change of what is sent, or where to, ends the current delivery. A new URL or a webhook that is
// set active starts without failures.
func TestEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		was              State
		edit             Edit
		changed, restart bool
		attempts         int
		want             string // in the description of the changes
	}{
		{"nothing", Active, Edit{}, false, false, 5, ""},
		{"the same", Active, Edit{URL: ptr(valid().URL), State: ptr(Active)}, false, false, 5, ""},
		{"description", Active, Edit{Description: ptr(" new ")}, true, false, 5, "description"},
		{"types", Active, Edit{Types: &[]event.Type{event.KeyCreated}}, true, true, 5, "types"},
		{"format", Active, Edit{Format: ptr(Slack)}, true, true, 5, "format slack instead of standard"},
		{"URL", Active, Edit{URL: ptr("https://new.example/secret")}, true, true, 0, "URL, on https://new.example"},
		{"pause", Active, Edit{State: ptr(Paused)}, true, true, 5, "paused instead of active"},
		{"resume", Paused, Edit{State: ptr(Active)}, true, true, 0, "active instead of paused"},
		{"retry", Failed, Edit{State: ptr(Active)}, true, true, 0, "active instead of failed"},
		{"describe a failed one", Failed, Edit{Description: ptr("x")}, true, false, 5, "description"},
	} {
		w := valid()
		w.State, w.Attempts, w.LastError, w.Cursor, w.FailingSince = c.was, 5, "failed", 7, time.Now()
		got, changes, err := decide(w, c.edit, anyURL)
		if err != nil || got.Changed != c.changed || got.Restart != c.restart || got.Webhook.Attempts != c.attempts ||
			got.Webhook.Cursor != 7 || got.Webhook.FailingSince.IsZero() != (c.attempts == 0) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		text := strings.Join(changes, "; ")
		if !strings.Contains(text, c.want) || strings.Contains(text, "secret") {
			t.Errorf("%s: changes %q, want %q and no path of a URL", c.name, text, c.want)
		}
	}
	if _, _, err := decide(valid(), Edit{IfVersion: ptr(int64(2))}, anyURL); errs.KindOf(err) != errs.Stale {
		t.Errorf("an old version: %v, want stale", err)
	}
}

// memory is a log and a store with one webhook.
type memory struct {
	Store
	webhook Webhook
	events  []event.Event
}

// log is the log of memory.
type log struct {
	event.Store
	*memory
}

// Page returns pages of three numbers, as a page of a long log may contain fewer events than it
// covers.
func (m log) Page(_ context.Context, _ string, q event.Query) (event.Page, error) {
	p := event.Page{Last: q.After, Head: int64(len(m.events)), Kept: 1}
	for i := range m.events {
		if e := &m.events[i]; e.Seq > q.After && e.Seq <= q.After+3 {
			p.Last = e.Seq
			if q.Match(e) {
				p.Events = append(p.Events, *e)
			}
		}
	}
	return p, nil
}

func (m *memory) Secrets(context.Context, string, string) (Webhook, Secrets, error) {
	return m.webhook, Secrets{Current: NewSecret()}, nil
}

func (m *memory) add(typ event.Type, subject string, scope event.Scope, data string) {
	e := event.New("acme", typ, time.Now(), subject, "user:ann", scope, json.RawMessage(data))
	e.Seq = int64(len(m.events)) + 1
	m.events = append(m.events, e)
}

// The filter of a webhook decides which events it gets. No filter gives it drafts.
func TestSelection(t *testing.T) {
	t.Parallel()
	m := &memory{}
	m.add(event.ProposalDrafted, "proposal:p", event.Draft("user:ann"), `{"category":"security","priority":"high"}`)  // 1
	m.add(event.ProposalOpened, "proposal:p", event.Members, `{"title":"x","category":"security","priority":"high"}`) // 2
	m.add(event.ProposalOpened, "proposal:q", event.Members, `{"category":"process","priority":"high","title":"x"}`)  // 3
	m.add(event.ProposalVoted, "proposal:p", event.Members, `{"category":"security","priority":"low"}`)               // 4
	m.add(event.KeyCreated, "key:k", event.Admins, `{"category":"x"}`)                                                // 5
	m.add(event.TaskCreated, "task:t", event.Only("agent:bot"), `{}`)                                                 // 6
	m.add(event.WebhookCreated, "webhook:hook-1", event.Admins, `{}`)                                                 // 7
	m.add(event.WebhookCreated, "webhook:hook-2", event.Admins, `{}`)                                                 // 8
	m.add(event.WebhookChanged, "webhook:hook-1", event.Admins, `{}`)                                                 // 9
	m.add(event.ProposalEdited, "proposal:p", event.Draft("user:ann"), `{}`)                                          // 10
	for _, c := range []struct {
		name   string
		edit   func(*Webhook)
		cursor int64
		want   []int64
	}{
		{"all", func(*Webhook) {}, 0, []int64{2, 3, 4, 5, 6, 8, 9}},
		{"after a number", func(*Webhook) {}, 5, []int64{6, 8, 9}},
		{"types", func(w *Webhook) { w.Types = []event.Type{event.ProposalVoted, event.KeyCreated} }, 0, []int64{4, 5}},
		{"drafts", func(w *Webhook) { w.Types = []event.Type{event.ProposalDrafted, event.ProposalEdited} }, 0, nil},
		{"category", func(w *Webhook) { w.Categories = []string{"security"} }, 0, []int64{2, 4, 5, 6, 8, 9}},
		{"both", func(w *Webhook) {
			w.Categories, w.Priorities = []string{"security", "process"}, []string{"high"}
		}, 0, []int64{2, 3, 5, 6, 8, 9}},
		{"both and types", func(w *Webhook) {
			w.Categories, w.Priorities, w.Types = []string{"process"}, []string{"high"}, []event.Type{event.ProposalOpened}
		}, 0, []int64{3}},
	} {
		m.webhook = valid()
		c.edit(&m.webhook)
		s := NewService(Options{Store: m, Log: log{memory: m}, Now: time.Now})
		var got []int64
		last := int64(0)
		sub := &delivery.Subscription{Progress: delivery.Progress{Cursor: c.cursor}}
		for e, err := range (source{s}).Events(t.Context(), sub) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq <= last {
				t.Errorf("%s: %d after %d", c.name, e.Seq, last)
			}
			if last = e.Seq; e.Encode != nil {
				if got = append(got, e.Seq); e.ID != m.events[e.Seq-1].ID {
					t.Errorf("%s: id %s of event %d, want that of the event", c.name, e.ID, e.Seq)
				}
			}
			if want := m.webhook.selects(&m.events[e.Seq-1]); (e.Encode != nil) != want && e.Encode != nil {
				t.Errorf("%s: event %d is delivered although it is not selected", c.name, e.Seq)
			}
		}
		if !slices.Equal(got, c.want) || last != 10 {
			t.Errorf("%s: events %v up to %d, want %v up to 10", c.name, got, last, c.want)
		}
	}
}

func TestFewRequestsOfAdminsAtOnce(t *testing.T) {
	t.Parallel()
	a := asked{orgs: map[string]int{}}
	for range maxAsked {
		if err := a.enter("acme"); err != nil {
			t.Fatalf("refused although there is room: %v", err)
		}
	}
	if errs.KindOf(a.enter("acme")) != errs.RateLimited || a.enter("other") != nil {
		t.Error("want acme full and the other org not")
	}
	a.leave("acme")
	a.leave("other")
	if a.enter("acme") != nil || len(a.orgs) != 1 {
		t.Errorf("%v, want room again and nothing of the other org", a.orgs)
	}
}

// News of an org is told once for many calls, and kept until it was taken.
func TestNewsIsCollected(t *testing.T) {
	t.Parallel()
	n := &news{orgs: map[string]struct{}{}}
	told := make(chan struct{}, 10)
	tell := func() { told <- struct{}{} }
	wait := func() {
		t.Helper()
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatal("nothing was told within a minute")
		}
	}
	for range 100 {
		n.add(tell, "a", "b")
	}
	wait()
	got := n.take()
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b"}) || len(n.take()) != 0 {
		t.Errorf("news %v, want a and b, once", got)
	}
	n.keep([]string{"b"})
	if got := n.take(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("news %v, want b", got)
	}
	n.add(tell, "c")
	wait()
	if len(told) != 0 {
		t.Errorf("told %d times too often", len(told))
	}
}

// searching is a store that takes its time to find an event.
type searching struct {
	*memory
	began   chan struct{}
	release chan struct{}
}

func (s searching) Event(ctx context.Context, _, _, _ string) (event.Event, error) {
	s.began <- struct{}{}
	select {
	case <-s.release:
		return event.Event{}, errs.ErrNotFound
	case <-ctx.Done():
		return event.Event{}, ctx.Err()
	}
}

// The search of the log for an event counts, too: it can be as long as the log.
func TestFewSearchesOfAdminsAtOnce(t *testing.T) {
	t.Parallel()
	store := searching{&memory{webhook: valid()}, make(chan struct{}, 10), make(chan struct{})}
	s := NewService(Options{Store: store, Log: log{memory: store.memory}, Now: time.Now})
	admin, err := identity.Authorize(&identity.Caller{
		Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "root"}, Scopes: identity.AllScopes,
	}, "acme", identity.ManageWebhooks)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	redeliver := func() error {
		_, err := s.Redeliver(ctx, admin, "hook-1", "evt-1")
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer close(store.release)
	for range maxAsked {
		work.Go(func() {
			if err := redeliver(); errs.KindOf(err) != errs.NotFound {
				t.Errorf("got %v, want that there is no such event", err)
			}
		})
		select {
		case <-store.began:
		case <-time.After(time.Minute):
			t.Fatal("no search began within a minute")
		}
	}
	if err := redeliver(); errs.KindOf(err) != errs.RateLimited {
		t.Errorf("one more: %v, want a refusal", err)
	}
}
