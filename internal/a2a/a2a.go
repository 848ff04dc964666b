// Package a2a is the agent-to-agent interface over HTTP: the platform's card and
// one JSON-RPC endpoint for each agent, POST /a2a/<agent_id>.
//
// The front (rpc.go, serve.go, stream.go) knows JSON-RPC 2.0 and nothing of the
// form of tasks; a dialect (spec.go) knows one form of them and nothing of
// envelopes. Every rule lives in the task service. The package knows no SQL and
// no other transport.
package a2a

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
)

// Options are what the interface needs.
type Options struct {
	Tasks   *dispatch.Tasks
	Workers *dispatch.Workers
	Agents  *agent.Registry

	Name    string // of the platform, shown in the card; empty: "Parley"
	Version string // of the platform, semver, shown in the card; empty: "0.0.0"

	// PublicURL is the address under which clients reach the server. It is required:
	// the Host header of a request is the client's own word, and a cache would hand a
	// card made of it to others.
	PublicURL *url.URL

	// CardAgents is how many agents a page of the platform's card has; 0: 1,000.
	CardAgents int
	// CardBindings are the bindings that cards of agents advertise, the preferred one
	// first: "jsonrpc", "http+json" and "grpc", one of the first two among them. All are
	// served, advertised or not. Empty: all but gRPC.
	CardBindings []string
	// OAuth is where clients get access tokens, for the cards; nil: nowhere.
	OAuth *OAuthURLs
	// CardKey signs the cards of agents, and KeysURL is where its public key is published;
	// nil: cards are not signed.
	CardKey *CardKey
	KeysURL string
	// CursorKey signs the cursors of the platform's card. All nodes must have the same;
	// nil: a random one.
	CursorKey []byte

	// KeepAlive is how often a silent stream sends a comment, and Recheck how often
	// it asks whether its key is still good. 0: every 15 and 5 seconds.
	KeepAlive, Recheck time.Duration
	// BlockFor is how long a request of the official protocol waits at most for its tasks to
	// rest, all items of a batch together; 0: 60 seconds.
	BlockFor time.Duration
}

type server struct {
	Options
	router *httpx.Router
	table  map[string]method

	seen          sightings // of the card that everybody sees
	seenByCallers sightings // apart, because callers choose their cursors

	firstPage, laterPages *cardCache // of the card that everybody sees
	roots                 *cardCache // of the platform's card at the root
	cards                 *agentCards
	signer                *cardSigner   // nil: cards are not signed
	building              chan struct{} // holds a value for each page that is built for a caller
}

// Mount adds the routes of the interface to the router.
func Mount(rt *httpx.Router, o Options) {
	o.Name, o.Version = cmp.Or(o.Name, "Parley"), cmp.Or(o.Version, "0.0.0")
	o.KeepAlive, o.Recheck = cmp.Or(o.KeepAlive, 15*time.Second), cmp.Or(o.Recheck, 4*time.Second)
	o.BlockFor = cmp.Or(o.BlockFor, blockFor)
	if o.PublicURL == nil {
		panic("a2a: no public address for the cards") // a mistake in the code, found at the start
	}
	o.CardAgents = cmp.Or(o.CardAgents, maxCardAgents)
	if len(o.CardBindings) == 0 {
		o.CardBindings = defaultBindings
	}
	if o.CursorKey == nil {
		o.CursorKey = []byte(rand.Text())
	}
	s := &server{
		Options: o, router: rt, table: map[string]method{},
		firstPage: newCardCache(), laterPages: newCardCache(), roots: newCardCache(), cards: newAgentCards(),
		signer: newCardSigner(o.CardKey, o.KeysURL), building: make(chan struct{}, 4),
	}
	s.speak(specDialect)
	s.speak(v03Dialect)
	s.speak(v1Dialect)
	rt.Area(httpx.Area{Programs: true, CrossOrigin: true}, "/a2a", "/a2a/")
	rt.HandleFunc("GET /.well-known/agent.json", s.card)
	rt.HandleFunc("GET /.well-known/agent-card.json", s.rootCard)
	rpc := http.HandlerFunc(s.serve)
	jsonRPC := httpx.Route{Refuse: refuse}
	rt.HandleRoute("POST /a2a", jsonRPC, http.HandlerFunc(s.noAgent))
	rt.HandleRoute("POST /a2a/{$}", jsonRPC, http.HandlerFunc(s.noAgent))
	rt.HandleRoute("POST /a2a/{agent}", jsonRPC, rpc)
	rt.HandleRoute("POST /a2a/{agent}/{$}", jsonRPC, rpc)
	for _, card := range []string{"agent-card.json", "agent.json"} {
		rt.HandleFunc("GET /a2a/{agent}/.well-known/"+card, s.agentCard)
		rt.HandleFunc("GET /a2a/.well-known/"+card, s.onlyCard)
	}
	binding := http.HandlerFunc(s.rest)
	for _, verb := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		rt.HandleRoute(verb+" /a2a/{agent}/{path...}", httpx.Route{Refuse: refuseREST}, binding)
	}
	// Else the mux would redirect other methods to the binding's path below.
	for _, path := range []string{"/a2a/{agent}", "/a2a/{agent}/{$}"} {
		rt.RefuseMethods(path, "PUT", "PATCH", "DELETE")
	}
	s.mountGRPC()
	rt.HandleFunc("GET /a2a/{agent}", s.agentCard)
	rt.HandleFunc("GET /a2a/{agent}/{$}", s.agentCard)
}

// dialect is one wire form of A2A: the methods it answers to.
type dialect map[string]method

// method is what a dialect does for one method name. Either call or stream is set.
type method struct {
	// call appends its result to out.
	call func(c *call, params, out []byte) ([]byte, error)
	// stream answers with events.
	stream func(c *call, params []byte) (*sseStream, error)
	// official says that errors have the details of version 1.0.
	official bool
	// eventErrors says that a client that takes nothing but events gets the refusal
	// of a stream as one: those of version 0.3 do not understand it otherwise.
	eventErrors bool
}

// speak adds a dialect. The name of a method decides which dialect is spoken, so
// no two may claim the same name.
func (s *server) speak(d dialect) {
	for name, m := range d {
		if _, taken := s.table[name]; taken {
			panic("a2a: two dialects answer to " + name) // a mistake in the code, found at the start
		}
		s.table[name] = m
	}
}
