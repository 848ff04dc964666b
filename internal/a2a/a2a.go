// Package a2a serves the agent-to-agent protocol: the platform's card and, for each agent, JSON-RPC
// at POST /a2a/<agent_id>, the HTTP+JSON binding below it and gRPC.
//
// The front (rpc.go, serve.go, stream.go) implements JSON-RPC 2.0 and does not know how tasks are
// encoded; a dialect (spec.go, v03.go, v1.go) encodes tasks and does not know envelopes. All rules
// are in package dispatch. This package knows no SQL and no other transport.
package a2a

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/trace"
)

// Options configure the interface.
type Options struct {
	Tasks     *dispatch.Tasks
	Workers   *dispatch.Workers
	Agents    *agent.Registry
	Directory *agent.Directory
	Tracer    *trace.Tracer // nil: no spans

	Name    string // name of the platform in the card; empty: "Parley"
	Version string // version of the platform in the card, semver; empty: "0.0.0"

	// PublicURL is the URL under which clients reach the server. It is required: the Host header of
	// a request is chosen by the client, and a cache would serve a card made from it to others.
	PublicURL *url.URL

	// Platform is the id of this installation, which cards name so that relays of Parley notice loops;
	// empty: they do not. Via returns the platforms that an agent leads to, if it is a relay; may be
	// nil.
	Platform string
	Via      func(a *agent.Agent) []string

	// CardAgents is the number of agents on a page of the platform's card; 0: 1,000.
	CardAgents int
	// CardBindings are the bindings that cards of agents advertise, the preferred one first:
	// "jsonrpc", "http+json" and "grpc", with at least one of the first two. All are served,
	// advertised or not. Empty: all but gRPC.
	CardBindings []string
	// OAuth has the URLs where clients get access tokens, for the cards; nil: none.
	OAuth *OAuthURLs
	// CardKey signs the cards of agents, and KeysURL publishes its public key; nil: cards are not
	// signed.
	CardKey *CardKey
	KeysURL string
	// CursorKey signs the cursors of the platform's card. All nodes must have the same key; nil: a
	// random one.
	CursorKey []byte

	// KeepAlive is how often a silent stream sends a comment, and Recheck how often it checks
	// whether its key is still valid. 0: every 15 and 4 seconds.
	KeepAlive, Recheck time.Duration
	// BlockFor is the longest time that a request of the official protocol waits for its tasks to
	// rest, for all items of a batch together; 0: 60 seconds.
	BlockFor time.Duration
	// OnCache gets the look-ups of a cache, for metrics; may be nil.
	OnCache func(name string, stats func() cache.Stats)
}

type server struct {
	Options
	router *httpx.Router
	table  map[string]method

	seen          sightings // for the public card
	seenByCallers sightings // separate, because callers choose their cursors

	firstPage, laterPages *cardCache // pages of the public card
	roots                 *cardCache // the platform's card at the root
	cards                 *agentCards
	signer                *cardSigner   // nil: cards are not signed
	building              chan struct{} // holds a value for each page that is being built for a caller
}

// Mount adds the routes of the interface to the router.
func Mount(rt *httpx.Router, o Options) {
	o.Name, o.Version = cmp.Or(o.Name, "Parley"), cmp.Or(o.Version, "0.0.0")
	o.KeepAlive, o.Recheck = cmp.Or(o.KeepAlive, 15*time.Second), cmp.Or(o.Recheck, 4*time.Second)
	o.BlockFor = cmp.Or(o.BlockFor, blockFor)
	if o.PublicURL == nil {
		panic("a2a: Options.PublicURL is required") // a programming error, found at the start
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
	if o.OnCache != nil {
		o.OnCache("cards", s.cardStats)
		o.OnCache("agent_cards", s.cards.kept.Stats)
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
	// Otherwise the mux would redirect other methods to the path of the binding.
	for _, path := range []string{"/a2a/{agent}", "/a2a/{agent}/{$}"} {
		rt.RefuseMethods(path, "PUT", "PATCH", "DELETE")
	}
	s.mountGRPC()
	rt.HandleFunc("GET /a2a/{agent}", s.agentCard)
	rt.HandleFunc("GET /a2a/{agent}/{$}", s.agentCard)
}

// dialect is one wire form of A2A: its methods by name.
type dialect map[string]method

// method implements one method of a dialect. Either call or stream is set.
type method struct {
	// call appends its result to out.
	call func(c *call, params, out []byte) ([]byte, error)
	// stream responds with events.
	stream func(c *call, params []byte) (*sseStream, error)
	// official methods have errors with the details of version 1.0.
	official bool
	// eventErrors methods send the refusal of a stream as an event to clients that accept only
	// events: clients of version 0.3 do not understand it otherwise.
	eventErrors bool
}

// speak adds a dialect. The method name selects the dialect, so no two dialects may have the same
// name.
func (s *server) speak(d dialect) {
	for name, m := range d {
		if _, taken := s.table[name]; taken {
			panic("a2a: two dialects have the method " + name) // a programming error, found at the start
		}
		s.table[name] = m
	}
}
