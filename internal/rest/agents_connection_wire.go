package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/dispatch"
)

// AgentConnection tells whether an agent has workers and, if not, why.
type AgentConnection struct {
	State        string            `json:"state" doc:"What is the case." example:"key_never_used"`
	Message      string            `json:"message" doc:"The same in a sentence, with what to do." example:"There is a key for a worker, and it was never used. Start the worker with it."`
	PinnedStatus *string           `json:"pinned_status" doc:"The status that an admin set; null: it follows from the workers." example:"busy"`
	LastSeenAt   *string           `json:"last_seen_at" format:"date-time" doc:"When a worker last asked for work; null if none is remembered." example:"2026-03-02T10:00:00.000000Z"`
	Workers      []ConnectedWorker `json:"workers" nullable:"false" doc:"The workers that are connected, the last seen first; at most 20."`
	Keys         []ConnectionKey   `json:"keys" nullable:"false" doc:"Live keys that are meant to work for the agent, the last used first; at most 20."`
	Refusals     []RefusedWorker   `json:"refusals" nullable:"false" doc:"Workers that this node refused since its start, the newest first; at most 20."`
}

// TransformSchema takes the list from the domain.
func (AgentConnection) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(dispatch.ConnectionStates))
	return s
}

// ConnectedWorker is a worker of an agent.
type ConnectedWorker struct {
	Name     string `json:"name" doc:"As it calls itself." example:"scout-1"`
	Capacity int    `json:"capacity" doc:"How many tasks it works on at once." example:"1"`
	SeenAt   string `json:"seen_at" format:"date-time" doc:"When it last asked for work." example:"2026-03-02T10:00:00.000000Z"`
}

// ConnectionKey is a key that is meant to work for an agent.
type ConnectionKey struct {
	ID         string  `json:"id" doc:"Names the key." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Prefix     string  `json:"prefix" doc:"How the secret begins." example:"parley_4fGh2k"`
	Name       string  `json:"name" doc:"What the key is for; empty if nobody said." example:"production"`
	Principal  string  `json:"principal" doc:"Whom the key speaks for." example:"agent:scout"`
	LastUsedAt *string `json:"last_used_at" format:"date-time" doc:"When it was last used, to the minute; null if never." example:"2026-03-02T10:00:00.000000Z"`
	Problem    *string `json:"problem" doc:"Why it cannot work for the agent; null if it can." example:"wrong_scope"`
}

var keyProblems = []dispatch.ConnectionState{dispatch.WrongScope, dispatch.OtherAgent}

// TransformSchema takes the list from the domain.
func (ConnectionKey) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "problem", oneOf(keyProblems))
	return s
}

// RefusedWorker is the last time that a credential was refused to work for an agent.
type RefusedWorker struct {
	Key       string `json:"key" doc:"The credential." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Principal string `json:"principal" doc:"Whom it speaks for." example:"agent:scout"`
	Reason    string `json:"reason" doc:"Why it was refused." example:"wrong_scope"`
	At        string `json:"at" format:"date-time" doc:"When." example:"2026-03-02T10:00:00.000000Z"`
}

// TransformSchema takes the list from the domain.
func (RefusedWorker) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "reason", oneOf(keyProblems))
	return s
}

func connectionOf(c *dispatch.Connection) AgentConnection {
	out := AgentConnection{
		State: string(c.State), Message: c.Sentence, PinnedStatus: orNull(c.Pinned), LastSeenAt: stampOrNull(c.LastSeen),
		Workers: []ConnectedWorker{}, Keys: []ConnectionKey{}, Refusals: []RefusedWorker{},
	}
	for i := range c.Workers {
		w := &c.Workers[i]
		out.Workers = append(out.Workers, ConnectedWorker{Name: w.Name, Capacity: w.Capacity, SeenAt: stamp(w.SeenAt)})
	}
	for i := range c.Keys {
		k := &c.Keys[i].Key
		out.Keys = append(out.Keys, ConnectionKey{
			ID: k.ID, Prefix: k.Prefix, Name: k.Name, Principal: k.Principal.Ref(), LastUsedAt: stampOrNull(k.LastUsedAt),
			Problem: orNull(string(c.Keys[i].Problem)),
		})
	}
	for i := range c.Refusals {
		r := &c.Refusals[i]
		out.Refusals = append(out.Refusals, RefusedWorker{Key: r.KeyID, Principal: r.Principal.Ref(), Reason: string(r.Reason), At: stamp(r.At)})
	}
	return out
}
