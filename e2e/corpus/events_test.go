package corpus

import (
	"net/http"
	"net/http/httptest"
	"strings"
)

// feed covers the log of events and webhooks.
func feed(s *session) {
	s.cast()
	const at, hooks = "/api/v1/orgs/events/events", "/api/v1/orgs/events/webhooks"
	s.must(201, s.quiet("ann", "POST /api/v1/orgs/events/proposals",
		`{"title":"Cache it","category":"performance","problem":"Slow.","suggested_fix":"Cache."}`))
	s.do("all of a type", "ann", "GET "+at+"?types=proposal.submitted", "")
	s.do("for admins only", "ann", "GET "+at+"?types=key.created&limit=1", "")
	s.do("as an admin", "root", "GET "+at+"?types=member.created&limit=1", "")
	s.do("about a subject", "ann", "GET "+at+"?subject=agent:events-bot", "")
	s.do("beyond the log", "ann", "GET "+at+"?types=proposal.submitted&after=1000000", "")
	s.do("bad parameters", "ann", "GET "+at+"?after=x&types=cow&subject=y&limit=0", "")
	s.do("without the scope", "worker", "GET "+at, "")
	s.do("a tool", "ann", "POST /mcp",
		call("tools/call", `{"name":"list_events","arguments":{"types":["proposal.submitted"]}}`),
		"Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2025-06-18")

	site := httptest.NewServer(&receiver{status: http.StatusOK})
	defer site.Close()
	s.names.set("receiver", strings.TrimPrefix(site.URL, "http://"))
	// Paused, so that only requests of this script send events.
	s.do("create a webhook", "root", "POST "+hooks, `{"url":"http://<receiver>/events","types":["proposal.submitted"],`+
		`"description":"For the corpus.","state":"paused"}`, "Idempotency-Key: w")
	s.do("nothing", "root", "POST "+hooks, `{"url":"x","types":["cow"],"format":"y","state":"failed"}`)
	s.do("without the scope", "ann", "POST "+hooks, `{"url":"http://<receiver>/events"}`)
	s.do("list", "root", "GET "+hooks, "")
	s.do("get", "root", "GET "+hooks+"/<hook-1>", "")
	s.do("get nothing", "root", "GET "+hooks+"/hook-nope", "")
	s.do("change", "root", "PATCH "+hooks+"/<hook-1>", `{"format":"cloudevents","categories":["performance"]}`)
	s.do("ping", "root", "POST "+hooks+"/<hook-1>/ping", "")
	s.do("redeliver", "root", "POST "+hooks+"/<hook-1>/redeliver", `{"event_id":"<evt-1>"}`)
	s.do("redeliver nothing", "root", "POST "+hooks+"/<hook-1>/redeliver", `{}`)
	s.do("deliveries", "root", "GET "+hooks+"/<hook-1>/deliveries", "")
	s.do("rotate", "root", "POST "+hooks+"/<hook-1>/rotate", `{"overlap_seconds":60}`)
	s.do("delete", "root", "DELETE "+hooks+"/<hook-1>", "")
	s.do("delete again", "root", "DELETE "+hooks+"/<hook-1>", "")
}
