package corpus

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var param = regexp.MustCompile(`\{(\w+)\}`)

// access tries every operation of the OpenAPI document with every kind of credential, and those
// with a body with invalid bodies: one line each.
func access(s *session) {
	s.cast()
	s.names.set("stranger", s.server.Key) // an admin of another org
	s.ownKey("writer", "user:root", `"svc:tasks:write"`)
	s.ownKey("caller", "user:root", `"svc:a2a:write"`)
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(s.quiet("", "GET /openapi.json", "").body), &doc); err != nil {
		s.Fatal(err)
	}
	values := map[string]string{"org": "access", "agent": "access-bot", "ref": "user:nobody"}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		filled := param.ReplaceAllStringFunc(path, func(p string) string {
			if v := values[p[1:len(p)-1]]; v != "" {
				return v
			}
			return "nope"
		})
		for _, verb := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			line := strings.ToUpper(verb) + " " + filled
			body := map[bool]string{true: "{}"}[verb == "post" || verb == "patch" || verb == "put"]
			if strings.HasSuffix(path, "/claim") {
				body = `{"wait_seconds":0}`
			}
			fmt.Fprintln(&s.out, "===", line)
			for _, who := range []string{"", "bad", "stranger", "reader", "writer", "caller", "worker", "partner", "root"} {
				s.outcome(who, s.quiet(who, line, body))
			}
			if body != "" {
				s.outcome("root, not JSON", s.quiet("root", line, "{"))
				s.outcome("root, text", s.quiet("root", line, body, "Content-Type: text/plain"))
				s.outcome("root, too large", s.quiet("root", line, `{"x":"<pad:300000>"}`))
			}
		}
	}
}

// outcome records the status and the code of a response.
func (s *session) outcome(who string, r *reply) {
	if who == "" {
		who = "no key"
	}
	var p struct {
		Code  string
		Error struct {
			Code int
			Data json.RawMessage // an object with a code, or a list of fields
		}
	}
	var data struct{ Code string }
	_ = json.Unmarshal([]byte(r.body), &p)
	code := p.Code
	if p.Error.Code != 0 {
		_ = json.Unmarshal(p.Error.Data, &data)
		code = fmt.Sprint(p.Error.Code, " ", data.Code)
	}
	fmt.Fprintln(&s.out, strings.TrimSpace(fmt.Sprintf("%-16s %d %s", who, r.status, code)))
}
