// Package a2a is the agent-to-agent interface over HTTP: the platform's card and
// one JSON-RPC endpoint for each agent, POST /a2a/<agent_id>.
//
// The front (rpc.go) knows JSON-RPC 2.0 and nothing of tasks; a dialect (spec.go)
// knows one wire form of tasks and nothing of JSON-RPC framing. Every rule lives
// in the task service. The package knows no SQL and no other transport.
package a2a

import (
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
)

// Options are what the interface needs.
type Options struct {
	Tasks  *task.Tasks
	Agents *agent.Registry

	Name    string // of the platform, shown in the card; empty: "Parley"
	Version string // of the platform, semver, shown in the card; empty: "0.0.0"

	// Stopping closes when the server stops: streams then end with a hint to come
	// again, and waits are cut short. Close it before http.Server.Shutdown, which
	// waits for them. nil: never.
	Stopping <-chan struct{}
}

// Mount adds the routes of the interface to the router.
func Mount(rt *httpx.Router, o Options) {
	_, _ = rt, o
}
