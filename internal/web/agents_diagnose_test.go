package web

import (
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// The page names what keeps a worker from being connected.
func TestDiagnosis(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0).UTC()
	key := func(scopes string, edit ...func(*identity.Key)) identity.Key {
		k := identity.Key{ID: "key-1", Prefix: "parley_abc", Scopes: identity.SplitScopes(scopes), CreatedAt: now.Add(-time.Hour)}
		for _, e := range edit {
			e(&k)
		}
		return k
	}
	used := func(ago time.Duration) func(*identity.Key) {
		return func(k *identity.Key) { k.LastUsedAt = now.Add(-ago) }
	}
	revoked := func(k *identity.Key) { k.RevokedAt = now.Add(-time.Minute) }
	expired := func(k *identity.Key) { k.ExpiresAt = now }
	for _, c := range []struct {
		name      string
		agent     agent.Agent
		presence  task.Presence
		keys      []identity.Key
		unknown   bool
		problem   string
		connected bool
		waits     bool
	}{
		{name: "no key", presence: task.Offline, problem: "no-key", waits: true},
		{name: "a revoked and an expired key", presence: task.Offline, keys: []identity.Key{key("svc:a2a:serve", revoked), key("svc:a2a:serve", expired)}, problem: "ended", waits: true},
		{name: "never used", presence: task.Offline, keys: []identity.Key{key("svc:a2a:serve")}, problem: "never-used", waits: true},
		{name: "another scope", presence: task.Offline, keys: []identity.Key{key("svc:tasks:read", used(0))}, problem: "wrong-scope", waits: true},
		{name: "a good key unused, a wrong one used since", presence: task.Offline, keys: []identity.Key{key("svc:a2a:serve"), key("svc:tasks:read", used(0))}, problem: "wrong-scope", waits: true},
		{name: "a good key unused, a wrong one used before", presence: task.Offline, keys: []identity.Key{key("svc:a2a:serve"), key("svc:tasks:read", used(2*time.Hour))}, problem: "never-used", waits: true},
		{name: "restricted to another agent", presence: task.Offline, keys: []identity.Key{key("svc:a2a:serve agent:other")}, problem: "other-agent", waits: true},
		{name: "works for another agent", presence: task.Offline, keys: []identity.Key{key("svc:a2a:serve", used(time.Second))}, problem: "other-agent", waits: true},
		{name: "was there before", presence: task.Offline, keys: []identity.Key{key("svc:a2a:serve", used(time.Hour))}, problem: "gone", waits: true},
		{name: "disabled", agent: agent.Agent{Disabled: true}, presence: task.Available, problem: "disabled"},
		{name: "pinned", agent: agent.Agent{Pinned: "offline"}, presence: task.Available, problem: "pinned", connected: true},
		{name: "pinned to what it is", agent: agent.Agent{Pinned: "available"}, presence: task.Available, connected: true},
		{name: "connected", presence: task.Available, connected: true},
		{name: "busy", presence: task.Busy, connected: true},
		{name: "built in", agent: agent.Agent{Builtin: "echo"}, presence: task.Offline, connected: true},
		{name: "keys are not the member's business", presence: task.Offline, unknown: true, waits: true},
	} {
		c.agent.ID, c.agent.Name = "scout", "Scout"
		got := diagnose(connectFacts{Agent: &c.agent, Presence: c.presence, Keys: c.keys, KnowsKeys: !c.unknown, Now: now})
		if got.Problem != c.problem || got.Connected != c.connected || got.Waits != c.waits || got.Title == "" || got.Text == "" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
