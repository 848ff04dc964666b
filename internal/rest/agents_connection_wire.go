package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/dispatch"
)

// AgentConnection reports whether an agent has workers and, if not, the likely cause.
type AgentConnection struct {
	State        string            `json:"state" doc:"Diagnosis." example:"key_never_used"`
	Message      string            `json:"message" doc:"The diagnosis in a sentence, with what to do."`
	PinnedStatus *string           `json:"pinned_status" doc:"Status set by an admin; null if it follows from the workers." example:"busy"`
	LastSeenAt   *string           `json:"last_seen_at" format:"date-time" doc:"When a worker last polled; null if unknown."`
	Workers      []ConnectedWorker `json:"workers" nullable:"false" doc:"Connected workers, last seen first; at most 20."`
	Keys         []ConnectionKey   `json:"keys" nullable:"false" doc:"Live keys for workers of the agent, last used first; at most 20."`
	Refusals     []RefusedWorker   `json:"refusals" nullable:"false" doc:"Workers refused by this node, newest first; at most 20."`
}

// TransformSchema adds the enumeration of the domain.
func (AgentConnection) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(dispatch.ConnectionStates))
	property(s, "message", exampleOf("There is a key for a worker, and it was never used. Start the worker with it."))
	return s
}

// ConnectedWorker is a connected worker of an agent.
type ConnectedWorker struct {
	Name     string `json:"name" doc:"Name that the worker chose." example:"scout-1"`
	Capacity int    `json:"capacity" doc:"Number of tasks it can run at once." example:"1"`
	SeenAt   string `json:"seen_at" format:"date-time" doc:"When it last polled for work."`
}

// ConnectionKey is a key for workers of an agent.
type ConnectionKey struct {
	ID         string  `json:"id" doc:"Key id." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Prefix     string  `json:"prefix" doc:"First characters of the secret." example:"parley_4fGh2k"`
	Name       string  `json:"name" doc:"Purpose of the key; may be empty." example:"production"`
	Principal  string  `json:"principal" doc:"Principal of the key." example:"agent:scout"`
	LastUsedAt *string `json:"last_used_at" format:"date-time" doc:"When it was last used, to the minute; null if never."`
	Problem    *string `json:"problem" doc:"Why it cannot work for the agent; null if it can." example:"wrong_scope"`
}

var keyProblems = []dispatch.ConnectionState{dispatch.WrongScope, dispatch.OtherAgent}

// TransformSchema adds the enumeration of the domain.
func (ConnectionKey) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "problem", oneOf(keyProblems))
	return s
}

// RefusedWorker is the last time that a credential was refused for work on an agent.
type RefusedWorker struct {
	Key       string `json:"key" doc:"Id of the credential." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Principal string `json:"principal" doc:"Principal of the credential." example:"agent:scout"`
	Reason    string `json:"reason" doc:"Why it was refused." example:"wrong_scope"`
	At        string `json:"at" format:"date-time" doc:"When it was refused."`
}

// TransformSchema adds the enumeration of the domain.
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
		out.Refusals = append(out.Refusals, RefusedWorker{
			Key: r.KeyID, Principal: r.Principal.Ref(), Reason: string(r.Reason), At: stamp(r.At),
		})
	}
	return out
}
