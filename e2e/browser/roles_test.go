package browser

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// counterparts maps each form of the dashboard to its REST call. Calls are made on objects that do
// not exist or with an invalid body: an authorized caller gets another error, and an unauthorized
// one gets 403 before anything else is checked.
var counterparts = map[string]string{
	"POST /proposals/new":                   "POST /proposals",
	"POST /proposals/{id}/vote":             "POST /proposals/{noprop}/vote",
	"POST /proposals/{id}/edit":             "PATCH /proposals/{noprop} title",
	"POST /proposals/{id}/decide":           "PATCH /proposals/{prop} status",
	"POST /proposals/decide":                "PATCH /proposals/{prop} status",
	"POST /followups":                       "POST /followups",
	"POST /followups/{id}":                  "PATCH /followups/{nofollowup}",
	"POST /agents":                          "POST /agents",
	"POST /agents/{id}":                     "PATCH /agents/{noagent}",
	"POST /agents/{id}/remote":              "PATCH /agents/{noagent}",
	"POST /agents/{id}/refresh":             "POST /agents/{noagent}/refresh",
	"POST /agents/{id}/state":               "PATCH /agents/{noagent}",
	"POST /agents/{id}/status":              "PATCH /agents/{noagent}",
	"POST /agents/{id}/connect":             "POST /keys",
	"POST /keys":                            "POST /keys",
	"POST /keys/{id}/rotate":                "POST /keys/{nokey}/rotate",
	"POST /keys/{id}/revoke":                "DELETE /keys/{nokey}",
	"POST /clients":                         "POST /clients",
	"POST /clients/{id}":                    "PATCH /clients/{noclient}",
	"POST /clients/{id}/rotate":             "POST /clients/{noclient}/rotate",
	"POST /clients/{id}/delete":             "DELETE /clients/{noclient}",
	"POST /members":                         "POST /members",
	"POST /members/{ref}":                   "PATCH /members/user:nobody",
	"POST /members/{ref}/erase":             "DELETE /members/user:nobody",
	"POST /members/invitations":             "POST /invitations",
	"POST /members/invitations/{id}/revoke": "DELETE /invitations/{noinv}",
	"POST /members/{ref}/link":              "PATCH /members/user:nobody",
	"POST /webhooks":                        "POST /webhooks",
	"POST /webhooks/{id}":                   "PATCH /webhooks/{nohook}",
	"POST /webhooks/{id}/state":             "PATCH /webhooks/{nohook}",
	"POST /webhooks/{id}/ping":              "POST /webhooks/{nohook}/ping",
	"POST /webhooks/{id}/redeliver":         "POST /webhooks/{nohook}/redeliver",
	"POST /webhooks/{id}/rotate":            "POST /webhooks/{nohook}/rotate",
	"POST /webhooks/{id}/delete":            "DELETE /webhooks/{nohook}",
	"POST /settings/friction":               "PUT /settings/friction",
	"POST /settings/notes":                  "POST /notes",
	"POST /settings/notes/{id}/delete":      "DELETE /notes/{nonote}",

	"GET /proposals":           "GET /proposals",
	"GET /followups":           "GET /followups",
	"GET /agents":              "GET /agents",
	"GET /catalogue":           "GET /agents",
	"GET /tasks":               "GET /a2a/tasks",
	"GET /friction":            "GET /friction",
	"GET /keys":                "GET /keys",
	"GET /keys/new":            "POST /keys",
	"GET /clients":             "GET /clients",
	"GET /clients/new":         "POST /clients",
	"GET /agents/new":          "POST /agents",
	"GET /members":             "GET /members",
	"GET /members/invitations": "GET /invitations",
	"GET /audit":               "GET /audit",
	"GET /proposals/new":       "POST /proposals",
	"GET /settings":            "PUT /settings/friction",
	"GET /overview":            "GET /proposals",
	"GET /events":              "GET /events",
	"GET /webhooks":            "GET /webhooks",
	"GET /webhooks/new":        "POST /webhooks",
}

// ownMatters matches forms about the person's own account, calls of agents, and the repetition of
// failed deliveries and tasks, of which there are none here.
var ownMatters = regexp.MustCompile(
	`^POST (/login|/logout|/account|/setup|/join|/start/hide|/switch|/settings/deliveries)|^POST (/agents/\{id\}/tasks|/tasks/\{uid\}/rerun)`,
)

// TestRoles compares the dashboard with REST for an admin and a member: every form that is shown
// is allowed by REST, every form whose call REST allows is shown somewhere, and every page opens
// exactly if its call is allowed.
func TestRoles(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { begin(t); compareRoles(t, readOnly(t)) })
	t.Run("postgres", func(t *testing.T) { begin(t); compareRoles(t, newFilled(t, newSiteOn(t, onPostgres(t)))) })
}

func compareRoles(t *testing.T, s *shared) {
	t.Helper()
	for _, role := range []struct {
		name   string
		person *person
		ref    string
		scopes []string
	}{
		{"admin", s.admin, "user:admin", []string{read, write, sendTasks, administer}},
		{"member", s.member, "user:bob", []string{read, write, sendTasks}},
	} {
		t.Run(role.name, func(t *testing.T) {
			rest, err := s.keyOf(role.ref, role.scopes...)
			if err != nil {
				t.Fatal(err)
			}
			pages := crawl(t, s, role.person)
			forms := s.forms(t, role.person, append(s.records(), pages...))
			for _, route := range routes(t, http.MethodPost) {
				route = "POST " + route
				call, known := counterparts[route]
				switch {
				case ownMatters.MatchString(route):
				case !known:
					t.Errorf("got %q, want a route with a known REST call", route)
				default:
					allowed := s.allows(t, rest, call)
					if shown := slices.Contains(forms, route); shown != allowed {
						t.Errorf("%s is shown to the %s: %t, want %t as REST has it for %q", route, role.name, shown, allowed, call)
					}
				}
			}
			for route, call := range counterparts {
				path, ok := strings.CutPrefix(route, "GET ")
				if !ok {
					continue
				}
				res, _ := s.get(t, role.person, s.path(path))
				allowed := s.allows(t, rest, call)
				if opens := res.StatusCode == http.StatusOK; opens != allowed {
					t.Errorf("%s opens for the %s: %s, want %t as REST has it for %q", path, role.name, res.Status, allowed, call)
				}
				if linked := slices.ContainsFunc(pages, func(p string) bool { return pattern(p) == s.path(path) }); linked != allowed {
					t.Errorf("the %s has a link to %s: %t, want %t as REST has it for %q", role.name, path, linked, allowed, call)
				}
			}
			s.compareProposals(t, role.person, rest)
		})
	}
}

// records returns pages of single objects, in every state.
func (s *shared) records() []string {
	var out []string
	for _, id := range []string{s.open, s.approved, s.rejected, s.resolved, s.mine} {
		out = append(out, s.path("/proposals/"+id), s.path("/proposals/"+id+"/edit"))
	}
	return append(
		out,
		s.path("/proposals/decide?status=approved&pick="+s.mine+".1"),
		s.path("/keys/"+s.keyID),
		s.path("/clients/"+s.client),
		s.path("/agents/scout"),
		s.path("/agents/scout/connect"),
		s.path("/agents/"+relayed),
		s.path("/members/user:carol"),
		s.path("/webhooks/"+s.hook),
	)
}

// allows reports whether REST authorizes the call.
func (s *shared) allows(t *testing.T, a api, call string) bool {
	t.Helper()
	none := strings.Repeat("0", 26)
	line, member, _ := strings.Cut(
		strings.NewReplacer(
			"{noprop}",
			"prop-"+none,
			"{prop}",
			s.resolved,
			"{nofollowup}",
			"fup-"+none,
			"{nokey}",
			"key-"+none,
			"{noclient}",
			"client-"+none,
			"{noinv}",
			"inv-"+none,
			"{noagent}",
			"nobody",
			"{nonote}",
			"note-"+none,
			"{nohook}",
			"hook-"+none,
		).Replace(call),
		"  ",
	)
	method, rest, _ := strings.Cut(line, " ")
	path, field, _ := strings.Cut(rest, " ")
	var body any
	if method != http.MethodGet && method != http.MethodDelete {
		body = object{"nonsense": member}
		if field != "" {
			body = object{field: "open"}
		}
	}
	status, out, err := a.call(method+" "+path, body)
	if err != nil || status >= 500 || status == http.StatusUnauthorized || method != http.MethodGet && status < 300 {
		t.Fatalf("%s: got %d, %v, %v; want no 401, no 5xx and no change", call, status, out, err)
	}
	return status != http.StatusForbidden
}

// forms lists the routes of the forms on the pages.
func (s *shared) forms(t *testing.T, p *person, pages []string) []string {
	t.Helper()
	all := routes(t, http.MethodPost)
	var out []string
	for _, path := range pages {
		_, body := s.get(t, p, path)
		for _, f := range pageForms(path, body) {
			if f.behind != "" && f.behind != f.action {
				t.Errorf("%s: scripts send the form of %s to %s, want the same URL", path, f.action, f.behind)
			}
			u, err := url.Parse(f.action)
			if err != nil || f.action == "" {
				t.Errorf("%s: form action = %q, want a URL", path, f.action)
				continue
			}
			if strings.HasPrefix(u.Path, "/account/") {
				continue // the person's own account
			}
			route := routeOf(all, strings.TrimPrefix(u.Path, s.path("")))
			if route == "" {
				t.Errorf("%s: form leads to %s, want a route", path, u.Path)
			}
			out = append(out, "POST "+route)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var wildcard = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// routeOf returns the route of a path: the one with the fewest wildcards.
func routeOf(routes []string, path string) string {
	best := ""
	for _, r := range routes {
		re := regexp.MustCompile("^" + wildcard.ReplaceAllString(regexp.QuoteMeta(r), "[^/]+") + "$")
		if re.MatchString(path) && (best == "" || strings.Count(r, "{") < strings.Count(best, "{")) {
			best = r
		}
	}
	return best
}

var (
	statusField = regexp.MustCompile(`name="status" value="([a-z]+)"`)
	voteForm    = regexp.MustCompile(`action="[^"]*/vote"`)
)

// compareProposals checks for proposals in each status that the page offers exactly the decisions
// and votes that REST allows.
func (s *shared) compareProposals(t *testing.T, p *person, rest api) {
	t.Helper()
	for _, id := range []string{s.open, s.approved, s.rejected, s.resolved} {
		record := rest.do(t, "GET /proposals/"+id, nil)
		var want, got []string
		if s.allows(t, rest, "PATCH /proposals/{prop} status") {
			for _, next := range record["allowed_transitions"].([]any) {
				want = append(want, next.(string))
			}
		}
		_, body := s.get(t, p, s.path("/proposals/"+id))
		for _, form := range strings.Split(body, "<form")[1:] {
			form, _, _ = strings.Cut(form, "</form>")
			if strings.Contains(form, "/"+id+"/decide\"") {
				for _, m := range statusField.FindAllStringSubmatch(form, -1) {
					got = append(got, m[1])
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s is %v, and its page offers %q; REST allows %q", id, record["status"], got, want)
		}
		if votes := voteForm.MatchString(body); votes != (record["status"] == "open") {
			t.Errorf("%s is %v, and its page offers a vote: %t, want it only while open", id, record["status"], votes)
		}
	}
}
