package corpus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// remoteCard is the site of a remote agent that has nothing but its card.
func remoteCard(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/.well-known/agent-card.json" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"name":"Remote","description":"Far away.","version":"1.0.0","capabilities":{},`+
		`"supportedInterfaces":[{"url":"http://%s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],`+
		`"skills":[{"id":"tariffs","name":"Tariffs","description":"Knows tariffs.","tags":["customs"]}]}`, r.Host)
}

// relays covers agents whose work a remote agent does.
func relays(s *session, org string) {
	site := httptest.NewServer(http.HandlerFunc(remoteCard))
	defer site.Close()
	s.names.set("remote", strings.TrimPrefix(site.URL, "http://"))
	s.quiet("root", "POST "+org, `{"id":"cards-relay","relay":{"url":"http://<remote>"}}`)
	eventually(s.T, "the relay is available", func() error {
		if r := s.quiet("root", "GET "+org+"/cards-relay", ""); r.member("status") != "available" {
			return errStill(r.body)
		}
		return nil
	})
	s.do("read its card", "root", "POST "+org+"/cards-relay/refresh", "")
	s.do("change its credential", "root", "PATCH "+org+"/cards-relay", `{"relay":{"credential":null}}`)
	s.do("change its skills", "root", "PATCH "+org+"/cards-relay", `{"skills":["x"]}`)
	s.do("make a relay of an agent", "root", "PATCH "+org+"/cards-bot", `{"relay":{"url":"http://<remote>"}}`)
	s.do("read the card of no relay", "root", "POST "+org+"/cards-bot/refresh", "")
	s.do("register a relay to nowhere", "root", "POST "+org, `{"id":"nowhere","relay":{"url":"http://10.0.0.1/"}}`)
	s.do("register a relay without a URL", "root", "POST "+org, `{"id":"nowhere","relay":{"credential":{"type":"x"}}}`)
	s.do("work for a relay", "root", "POST /api/v1/agents/cards-relay/claim", `{}`)
	s.quiet("root", "PATCH "+org+"/cards-relay", `{"disabled":true}`)
}

// cards covers the agents of an org as admins manage them and as others see them.
func cards(s *session) {
	s.cast()
	const org = "/api/v1/orgs/cards/agents"
	s.do("register", "root", "POST "+org,
		`{"id":"cards-pub","name":"Public","description":"For all.","public":true,"version":"2.0.0",`+
			`"documentation_url":"https://example.com/docs","provider":{"organization":"Acme","url":"https://example.com"},`+
			`"skills":["quick",{"id":"deep","name":"Deep","description":"Goes deep.","tags":["depth"],"examples":["Dig."],`+
			`"input_modes":["text/plain"]}]}`, "Idempotency-Key: a")
	s.do("again", "root", "POST "+org, `{"id":"cards-pub","name":"Public"}`)
	s.do("register nothing", "root", "POST "+org, `{"id":"A B","name":"","skills":[7,""],"version":"<pad:200>"}`)
	s.do("without the scope", "ann", "POST "+org, `{"id":"x","name":"X"}`)
	s.do("list", "reader", "GET "+org, "")
	s.do("get", "reader", "GET "+org+"/cards-pub", "")
	s.do("no such agent", "reader", "GET "+org+"/nobody", "")
	s.do("change", "root", "PATCH "+org+"/cards-bot", `{"description":"Works.","status":"busy"}`)
	s.do("change nothing", "root", "PATCH "+org+"/cards-bot", `{}`)
	s.do("change it badly", "root", "PATCH "+org+"/cards-bot", `{"status":"gone","icon_url":"x","nope":1}`)
	s.do("change nobody", "root", "PATCH "+org+"/nobody", `{"name":"x"}`)
	s.do("an id that is taken", "root", "POST "+org, `{"id":"echo","name":"Mine","public":true}`)
	relays(s, org)
	s.do("connection", "root", "GET "+org+"/cards-bot/connection", "")
	s.do("connection of nobody", "root", "GET "+org+"/nobody/connection", "")
	s.do("follow the worker", "root", "PATCH "+org+"/cards-bot", `{"status":null}`)
	s.do("a worker that is refused", "ann", "POST /api/v1/agents/cards-bot/claim", `{}`)
	s.do("a worker that connects", "worker", "POST /api/v1/agents/cards-bot/claim", `{"worker":"w","wait_seconds":0}`)
	// Nodes that share a database exchange the presence of their workers once a second.
	eventually(s.T, "the agent is available", func() error {
		if r := s.quiet("root", "GET "+org+"/cards-bot", ""); r.member("status") != "available" {
			return errStill(r.body)
		}
		return nil
	})
	s.do("connected", "root", "GET "+org+"/cards-bot/connection", "")

	// The public part of the card is cached for at most a second.
	eventually(s.T, "the public card has the agent", func() error {
		if r := s.quiet("", "GET /.well-known/agent.json", ""); !strings.Contains(r.body, "cards-pub") {
			return errStill(r.body)
		}
		return nil
	})
	s.do("the card of the platform", "", "GET /.well-known/agent.json", "")
	s.do("not changed", "", "GET /.well-known/agent.json", "", "If-None-Match: *")
	s.do("not changed since it was read", "", "GET /.well-known/agent.json", "", `If-None-Match: "<etag-1>"`)
	s.do("for a member", "ann", "GET /.well-known/agent.json", "")
	s.do("behind an agent", "", "GET /.well-known/agent.json?after=x", "")
	s.do("with a bad key", "bad", "GET /.well-known/agent.json", "")
	s.do("the official root card", "", "GET /.well-known/agent-card.json", "", "A2A-Version: 1.0")
	s.do("for a member, of version 0.3", "ann", "GET /.well-known/agent-card.json", "", "A2A-Version: 0.3")
	s.do("an agent's card for all clients", "", "GET /a2a/cards-pub/.well-known/agent-card.json", "")
	s.do("of version 1.0", "", "GET /a2a/cards-pub/.well-known/agent-card.json", "", "A2A-Version: 1.0")
	s.do("not changed", "", "GET /a2a/cards-pub/.well-known/agent-card.json", "", "A2A-Version: 1.0", "If-None-Match: *")
	s.do("of version 0.3", "", "GET /a2a/cards-pub/.well-known/agent.json", "", "A2A-Version: 0.3")
	s.do("of a newer minor version", "", "HEAD /a2a/cards-pub/.well-known/agent-card.json", "", "A2A-Version: 1.7")
	s.do("of another version", "", "GET /a2a/cards-pub/.well-known/agent-card.json", "", "A2A-Version: 2.0")
	s.do("for the Go SDK", "", "GET /a2a/cards-pub/.well-known/agent-card.json", "",
		"User-Agent: Go-http-client/1.1", "A2A-Version: 1.0")
	s.do("at the agent's address", "ann", "GET /a2a/cards-bot", "")
	s.do("a private agent's, without a key", "", "GET /a2a/cards-bot/.well-known/agent-card.json", "")
	s.do("of nobody", "ann", "GET /a2a/nobody/.well-known/agent-card.json", "")
	s.ownKey("narrow", "service:partner", `"svc:a2a:write","agent:cards-bot"`)
	s.do("of the only agent", "narrow", "GET /a2a/.well-known/agent-card.json", "")
	s.do("of the only agent, at the root", "narrow", "HEAD /.well-known/agent-card.json", "")
	s.do("of the only agent, without one", "ann", "GET /a2a/.well-known/agent-card.json", "")
	const find = "GET /api/v1/agents"
	s.do("find by words", "ann", find+"?q=CARDS&limit=1", "")
	s.do("find by skill", "ann", find+"?q=cards&skill=depth", "")
	s.do("find by status", "ann", find+"?q=cards&presence=available&org=cards", "")
	s.do("find nothing", "ann", find+"?q=cards+absent", "")
	s.do("find badly", "ann", find+"?q=%25&presence=asleep&limit=0&cursor=x&nope=1", "")
	s.do("find without a key", "", find, "")
	s.do("a quota of other orgs", "root", "PATCH "+org+"/cards-pub", `{"quota":{"tasks":5,"per":"day"}}`)
	s.do("no quota", "root", "PATCH "+org+"/cards-pub", `{"quota":{"tasks":0,"per":"week"}}`)
	s.do("who used it", "root", "GET "+org+"/cards-pub/usage", "")
	s.do("without the right to see it", "ann", "GET "+org+"/cards-pub/usage", "")
	s.do("what the org used", "ann", "GET /api/v1/me/usage", "")
	s.do("remove the quota", "root", "PATCH "+org+"/cards-pub", `{"quota":null}`)
	s.do("who used it without a quota", "root", "GET "+org+"/cards-pub/usage", "")
	s.do("disable", "root", "PATCH "+org+"/cards-bot", `{"disabled":true}`)
	s.rpc("a disabled agent", "ann", "cards-bot", "tasks/get", `{"id":"x"}`)
}
