package corpus

import (
	"encoding/json"
	"errors"
	"regexp"
)

var secret = regexp.MustCompile(`parley_[0-9A-Za-z]{36}`)

// cast creates the org of the topic with its principals: root, an admin; ann, a user; the agent
// <org>-bot and the service partner. Their keys are called root, ann, bot and partner; reader is a
// read-only key of root, worker a key of the agent.
func (s *session) cast() {
	s.Helper()
	bot := s.org + "-bot"
	s.cli(s.T, "org", "create", s.org)
	s.cli(s.T, "user", "create", "root", "--org", s.org, "--admin")
	s.cli(s.T, "user", "create", "ann", "--org", s.org)
	s.key("root", "user:root", "svc:tasks:read", "svc:tasks:write", "svc:a2a:write", "svc:admin:admin")
	s.key("ann", "user:ann", "svc:tasks:read", "svc:tasks:write", "svc:a2a:write")
	s.must(201, s.quiet("root", "POST /api/v1/orgs/"+s.org+"/agents", `{"id":"`+bot+`","name":"Bot","skills":["work"]}`))
	s.must(201, s.quiet("root", "POST /api/v1/orgs/"+s.org+"/members", `{"kind":"service","id":"partner"}`))
	s.ownKey("bot", "agent:"+bot, `"svc:tasks:read","svc:tasks:write","svc:a2a:write"`)
	s.ownKey("worker", "agent:"+bot, `"svc:a2a:serve"`)
	s.ownKey("partner", "service:partner", `"svc:tasks:read","svc:tasks:write","svc:a2a:write"`)
	s.ownKey("reader", "user:root", `"svc:tasks:read"`)
	s.names.set("bad", "parley_000000000000000000000000000000000000")
}

// key creates a key with the command line, the only way to do so for another user.
func (s *session) key(name, as string, scopes ...string) {
	s.Helper()
	args := []string{"key", "create", "--org", s.org, "--as", as}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	s.names.set(name, secret.FindString(s.cli(s.T, args...)))
}

// ownKey creates a key as root.
func (s *session) ownKey(name, as, scopes string) {
	s.Helper()
	r := s.quiet("root", "POST /api/v1/orgs/"+s.org+"/keys", `{"principal":"`+as+`","scopes":[`+scopes+`]}`)
	s.must(201, r)
	s.names.set(name, r.member("secret"))
}

// must fails unless the response has the status.
func (s *session) must(status int, r *reply) {
	s.Helper()
	if r.status != status {
		s.Fatalf("got status %d, want %d: %s", r.status, status, r.body)
	}
}

// member returns a string member of a response.
func (r *reply) member(name string) string {
	var v map[string]any
	_ = json.Unmarshal([]byte(r.body), &v)
	text, _ := v[name].(string)
	return text
}

// errStill reports that something has not changed yet.
func errStill(what string) error { return errors.New("still " + what) }
