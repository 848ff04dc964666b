package browser

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// form is a form of a page, as a browser would submit it.
type form struct {
	page, action string
	behind       string // URL that scripts send it to; empty: none
	fields       url.Values
	types        map[string]string // of the fields that people fill in
}

var (
	wholeForm = regexp.MustCompile(`(?s)<form([^>]*)>(.*?)</form>`)
	fieldTag  = regexp.MustCompile(`(?s)<(input|textarea|select|button)\b([^>]*)>`)
	anyAttr   = regexp.MustCompile(`\s([a-z-]+)(?:="([^"]*)")?`)
)

func attributes(tag string) map[string]string {
	out := map[string]string{}
	for _, m := range anyAttr.FindAllStringSubmatch(tag, -1) {
		out[m[1]] = html.UnescapeString(m[2])
	}
	return out
}

// pageForms reads the POST forms of a page.
func pageForms(path, body string) []form {
	var out []form
	for _, m := range wholeForm.FindAllStringSubmatch(body, -1) {
		head := attributes(m[1])
		if !strings.EqualFold(head["method"], "post") {
			continue
		}
		f := form{
			page: path, action: head["action"], behind: head["hx-post"], fields: url.Values{},
			types: map[string]string{},
		}
		pressed := false
		for _, tag := range fieldTag.FindAllStringSubmatch(m[2], -1) {
			a := attributes(tag[2])
			name := a["name"]
			switch {
			case name == "":
			case tag[1] == "input" && a["type"] == "hidden":
				f.fields.Add(name, a["value"])
			case tag[1] == "button":
				if !pressed {
					f.fields.Set(name, a["value"])
					pressed = true
				}
			default:
				kind := a["type"]
				if tag[1] != "input" {
					kind = tag[1]
				}
				f.types[name] = kind
				if (kind == "checkbox" || kind == "radio") && !f.fields.Has(name) {
					f.fields.Set(name, a["value"])
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// TestEveryFormsErrors submits each form of the dashboard with empty fields and with far too long
// ones. The response is never a 5xx or an empty page: it has an error message and the typed text.
func TestEveryFormsErrors(t *testing.T) {
	begin(t)
	s := newFilled(t, newSite(t))
	routes := routes(t, http.MethodPost)
	tried := map[string]bool{}
	for _, path := range crawl(t, s, s.admin) {
		_, body := s.get(t, s.admin, path)
		for _, f := range pageForms(path, body) {
			u, err := url.Parse(f.action)
			if err != nil {
				t.Fatal(err)
			}
			route := routeOf(routes, strings.TrimPrefix(u.Path, s.path("")))
			texts := 0
			for _, kind := range f.types {
				if kind == "textarea" || kind == "" || kind == "text" {
					texts++
				}
			}
			// Messages to agents may be long and contain any text.
			if tried[route] || texts == 0 || strings.HasPrefix(route, "/account") || strings.Contains(route, "/tasks") {
				continue
			}
			tried[route] = true
			t.Run(strings.ReplaceAll(strings.Trim(route, "/"), "/", " "), func(t *testing.T) {
				const mark = "a-text-that-somebody-typed"
				for _, text := range []string{mark + strings.Repeat(" far too long", 2500), mark + "\x00\x07"} {
					fields := url.Values{}
					for name, values := range f.fields {
						fields[name] = values
					}
					for name, kind := range f.types {
						switch kind {
						case "textarea", "", "text", "search":
							fields.Set(name, text)
						case "checkbox", "radio": // unchanged
						default:
							fields.Set(name, "no-such-choice")
						}
					}
					fields.Del("once")
					res, body := s.send(t, s.admin, http.MethodPost, f.action, fields)
					if res.StatusCode < 400 || res.StatusCode >= 500 {
						t.Errorf("%s of %s: status = %s, want 4xx", f.action, f.page, res.Status)
					}
					if !strings.Contains(body, `role="alert"`) && !strings.Contains(body, `class="card failure"`) {
						t.Errorf("%s of %s: got no error on the page, want one: %s", f.action, f.page, cut(body, 400))
					}
					if res.StatusCode == http.StatusUnprocessableEntity && !strings.Contains(text, "\x00") &&
						!strings.Contains(body, mark) {
						t.Errorf("%s of %s: got a form without the typed text, want the text kept", f.action, f.page)
					}
				}
			})
		}
	}
	if len(tried) < 3 {
		t.Errorf("got %d forms, want at least 3: %v", len(tried), tried)
	}
}
