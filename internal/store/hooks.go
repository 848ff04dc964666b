package store

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/webhook"
)

// Records encodes records as the REST API shows them, for the data of events. It must neither
// fail nor block: it runs in transactions.
type Records interface {
	Proposal(p *proposal.Proposal) json.RawMessage
	Followup(f *followup.Followup) json.RawMessage
	Friction(f *friction.Friction) json.RawMessage
	Task(t *task.Task) json.RawMessage
	// Agent gets the status that others see: the pinned one, or the presence of its workers.
	Agent(a *agent.Agent, status string) json.RawMessage
	Member(m *identity.Member) json.RawMessage
	Key(k *identity.Key) json.RawMessage
	Client(c *oauth.Client) json.RawMessage
	Invitation(i *identity.Invitation) json.RawMessage
	Webhook(w *webhook.Webhook) json.RawMessage
}

// hooks are what the engines call in and after a write.
type hooks struct {
	records  Records
	keys     *secret.Keyring
	outcomes time.Duration // how long the outcome of an idempotency key is kept
	revoked  func(org string)
	awaiting func([]awaited)                  // see searchIndex.added
	events   atomic.Pointer[func(org string)] // PostgreSQL's numberer runs already when it is set
}

func newHooks(r Records, keys *secret.Keyring) *hooks {
	if r == nil {
		r = noRecords{}
	}
	h := &hooks{records: r, keys: keys, revoked: func(string) {}, awaiting: func([]awaited) {}}
	h.onEvents(func(string) {})
	return h
}

func (h *hooks) onEvents(f func(org string)) { h.events.Store(&f) }

// OnRevoke registers a function that is called after each commit of this process that may
// have revoked rights in an org, and before the write returns to its caller. An empty org
// means any. f must not use the store. OnRevoke must be called before the first write.
func (s *Store) OnRevoke(f func(org string)) { s.hooks.revoked = f }

// OnEvents registers a function that is called after events of an org were added to its log by
// this process. f must not wait for the store.
func (s *Store) OnEvents(f func(org string)) { s.hooks.onEvents(f) }

// tellRevoked calls the function of OnRevoke after a commit.
func (h *hooks) tellRevoked(t *tx) {
	for _, org := range t.revoked {
		h.revoked(org)
	}
}

// tellEvents calls the function of OnEvents, once for each org.
func (h *hooks) tellEvents(t *tx) {
	var told []string
	for i := range t.events { // mostly of one org
		if org := t.events[i].org; !slices.Contains(told, org) {
			told = append(told, org)
			h.tellOf(org)
		}
	}
}

func (h *hooks) tellOf(org string) { (*h.events.Load())(org) }

// noRecords is used if no Records are given.
type noRecords struct{}

var empty = json.RawMessage("{}")

func (noRecords) Proposal(*proposal.Proposal) json.RawMessage     { return empty }
func (noRecords) Followup(*followup.Followup) json.RawMessage     { return empty }
func (noRecords) Friction(*friction.Friction) json.RawMessage     { return empty }
func (noRecords) Task(*task.Task) json.RawMessage                 { return empty }
func (noRecords) Agent(*agent.Agent, string) json.RawMessage      { return empty }
func (noRecords) Member(*identity.Member) json.RawMessage         { return empty }
func (noRecords) Key(*identity.Key) json.RawMessage               { return empty }
func (noRecords) Client(*oauth.Client) json.RawMessage            { return empty }
func (noRecords) Invitation(*identity.Invitation) json.RawMessage { return empty }
func (noRecords) Webhook(*webhook.Webhook) json.RawMessage        { return empty }
