package client_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-dev/parley/sdk/client"
)

// operations maps each operation of the API to the method that calls it.
func operations(c *client.Client) map[string]any {
	return map[string]any{
		"get-platform-card": c.PlatformCard,
		"get-agent-card":    c.Agent("x").Card,
		"call-agent":        c.Agent("x").Call,
		"get-me":            c.Me,
		"get-health":        c.Health,
		"get-readiness":     c.Ready,

		"claim-tasks": c.Worker("x").Claim,
		"report-task": c.Worker("x").Report,
		"return-task": c.Worker("x").Return,

		"exchange-work": c.Worker("x").Exchange,

		"list-own-keys":  c.OwnKeys.List,
		"create-own-key": c.OwnKeys.Create,
		"get-own-key":    c.OwnKeys.Get,
		"revoke-own-key": c.OwnKeys.Revoke,
		"rotate-own-key": c.OwnKeys.Rotate,

		"list-a2a-tasks":         c.OrgTasks.List,
		"get-a2a-task":           c.OrgTasks.Get,
		"list-push-configs":      c.OrgTasks.Pushes,
		"list-task-push-configs": c.OrgTasks.TaskPushes,
		"retry-push-config":      c.OrgTasks.RetryPush,
		"rerun-a2a-task":         c.OrgTasks.Rerun,
		"rerun-task":             c.Agent("x").Rerun,

		"list-agents":          c.Agents.List,
		"create-agent":         c.Agents.Create,
		"get-agent":            c.Agents.Get,
		"change-agent":         c.Agents.Update,
		"get-agent-connection": c.Agents.Connection,
		"refresh-agent":        c.Agents.Refresh,
		"find-agents":          c.Agents.Find,
		"get-usage":            c.Agents.Usage,
		"get-agent-usage":      c.Agents.Callers,

		"list-audit":  c.Audit.List,
		"list-events": c.Events,

		"list-clients":  c.OAuthClients.List,
		"create-client": c.OAuthClients.Create,
		"get-client":    c.OAuthClients.Get,
		"change-client": c.OAuthClients.Update,
		"delete-client": c.OAuthClients.Delete,
		"rotate-client": c.OAuthClients.Rotate,

		"list-webhooks":           c.Webhooks.List,
		"create-webhook":          c.Webhooks.Create,
		"get-webhook":             c.Webhooks.Get,
		"change-webhook":          c.Webhooks.Update,
		"delete-webhook":          c.Webhooks.Delete,
		"rotate-webhook":          c.Webhooks.Rotate,
		"ping-webhook":            c.Webhooks.Ping,
		"list-webhook-deliveries": c.Webhooks.Deliveries,
		"redeliver-webhook":       c.Webhooks.Redeliver,

		"list-friction":         c.Friction.List,
		"report-friction":       c.Friction.Report,
		"get-friction":          c.Friction.Get,
		"get-friction-settings": c.Friction.Settings,
		"set-friction-settings": c.Friction.SetSettings,

		"list-invitations":  c.Invitations.List,
		"create-invitation": c.Invitations.Create,
		"revoke-invitation": c.Invitations.Revoke,

		"list-keys":  c.Keys.List,
		"create-key": c.Keys.Create,
		"get-key":    c.Keys.Get,
		"revoke-key": c.Keys.Revoke,
		"rotate-key": c.Keys.Rotate,

		"list-members":       c.Members.List,
		"create-member":      c.Members.Create,
		"get-member":         c.Members.Get,
		"change-member":      c.Members.Update,
		"erase-member":       c.Members.Erase,
		"create-member-link": c.Members.CreateLink,

		"list-notes":  c.Notes.List,
		"create-note": c.Notes.Create,
		"delete-note": c.Notes.Delete,

		"list-proposals":         c.Proposals.List,
		"submit-proposal":        c.Proposals.Submit,
		"count-proposals":        c.Proposals.Counts,
		"decide-proposals":       c.Proposals.Decide,
		"group-proposals":        c.Proposals.Groups,
		"find-similar-proposals": c.Proposals.FindSimilar,
		"list-similar-proposals": c.Proposals.Similar,
		"get-proposal":           c.Proposals.Get,
		"change-proposal":        c.Proposals.Update,
		"list-history":           c.Proposals.History,
		"cast-vote":              c.Proposals.Vote,
		"withdraw-vote":          c.Proposals.WithdrawVote,
		"list-votes":             c.Proposals.Votes,

		"list-followups":  c.Followups.List,
		"create-followup": c.Followups.Create,
		"get-followup":    c.Followups.Get,
		"change-followup": c.Followups.Update,
	}
}

var operationID = regexp.MustCompile(`(?m)^\s+operationId: (\S+)$`)

func TestEveryOperationHasAMethod(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range operationID.FindAllStringSubmatch(string(document), -1) {
		documented = append(documented, m[1])
	}
	slices.Sort(documented)
	documented = slices.Compact(documented) // links name operations, too
	have := slices.Sorted(maps.Keys(operations(admin(t))))
	if diff := cmp.Diff(documented, have); diff != "" || len(have) == 0 {
		t.Errorf("operations (-documented +with a method):\n%s", diff)
	}
}

// TestMethodsFitTheDocument calls every method with all fields set and compares the request, and
// the type of the result, with the document.
func TestMethodsFitTheDocument(t *testing.T) {
	t.Parallel()
	doc := readDocument(t)
	sent := &recorder{}
	c := newClient(t, client.Config{URL: "http://parley.invalid", Org: "x", HTTPClient: &http.Client{Transport: sent}})
	methods := operations(c)
	checked := 0
	for path, operations := range doc.Paths {
		for verb, op := range operations {
			method := methods[op.ID]
			if method == nil {
				continue // reported by TestEveryOperationHasAMethod
			}
			checked++
			t.Run(op.ID, func(t *testing.T) {
				out := invoke(method)
				if got, want := sent.method+" "+sent.path,
					strings.ToUpper(verb)+" "+placeholder.ReplaceAllString(path, "x"); got != want {
					t.Errorf("the method requests %s; want %s", got, want)
				}
				if op.ID == "call-agent" {
					return // its body is any JSON-RPC call
				}
				query := map[string]bool{}
				for _, p := range op.Parameters {
					if p.In == "query" {
						query[p.Name] = true
					}
				}
				if diff := cmp.Diff(slices.Sorted(maps.Keys(query)), sent.query, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("query parameters (-document +method):\n%s", diff)
				}
				body := doc.members(op.RequestBody.Content["application/json"].Schema)
				if diff := cmp.Diff(body, sent.members, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("members of the body (-document +method):\n%s", diff)
				}
				doc.fits(t, op, out)
			})
		}
	}
	if checked != len(methods) {
		t.Errorf("%d methods were checked, want %d", checked, len(methods))
	}
}

var placeholder = regexp.MustCompile(`\{[^}]+\}`)

// recorder responds to every request with an empty object and keeps the last one.
type recorder struct {
	method, path   string
	query, members []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.method, r.path, r.members = req.Method, req.URL.Path, nil
	r.query = slices.Sorted(maps.Keys(req.URL.Query()))
	if req.Body != nil {
		var body map[string]json.RawMessage
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
			return nil, err
		}
		r.members = slices.Sorted(maps.Keys(body))
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{
		StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(`{"result":{}}`)),
		Request: req,
	}, nil
}

// invoke calls a method with all fields of its arguments set, and returns the type of the
// result; nil: it has none.
func invoke(method any) reflect.Type {
	f := reflect.ValueOf(method)
	var args []reflect.Value
	for i := range f.Type().NumIn() - 1 { // without the options
		args = append(args, filled(f.Type().In(i)))
	}
	f.Call(args)
	if f.Type().NumOut() == 1 {
		return nil
	}
	return f.Type().Out(0)
}

// filled returns a value without zero fields.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t {
	case reflect.TypeFor[context.Context]():
		v.Set(reflect.ValueOf(context.Background()))
		return v
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Now()))
		return v
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte("{}"))
		return v
	case reflect.TypeFor[any]():
		v.Set(reflect.ValueOf(struct{}{}))
		return v
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		v.Index(0).Set(filled(t.Elem()))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(filled(t.Field(i).Type))
			}
		}
	}
	return v
}

// document is the part of the OpenAPI document that is needed here.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	ID          string `json:"operationId"`
	Parameters  []struct{ Name, In string }
	RequestBody struct{ Content content }
	Responses   map[string]struct{ Content content }
}

type content map[string]struct{ Schema schema }

type schema struct {
	Ref        string `json:"$ref"`
	Properties map[string]schema
	Items      *schema
}

func readDocument(t *testing.T) *document {
	t.Helper()
	res, err := http.Get(server.URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var doc document
	if err := json.NewDecoder(res.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return &doc
}

func (d *document) resolve(s schema) schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// members returns the names of the members of an object.
func (d *document) members(s schema) []string {
	names := slices.Sorted(maps.Keys(d.resolve(s).Properties))
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "$") })
}

// fits checks that a result has a field for every documented member.
func (d *document) fits(t *testing.T, op operation, out reflect.Type) {
	t.Helper()
	var s schema
	for status, r := range op.Responses {
		if status[0] == '2' {
			s = d.resolve(r.Content["application/json"].Schema)
		}
	}
	if out == nil {
		if len(s.Properties) > 0 {
			t.Error("the method has no result, want that of the document")
		}
		return
	}
	if out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	items, isPage := out.FieldByName, strings.HasPrefix(out.Name(), "Page[")
	if isPage {
		f, _ := items("Items")
		out = f.Type
	}
	if out.Kind() == reflect.Slice {
		for _, p := range s.Properties {
			if p.Items != nil {
				s, out = d.resolve(*p.Items), out.Elem()
				break
			}
		}
	}
	known := map[string]bool{}
	names(out, known)
	for _, member := range d.members(s) {
		if !known[member] {
			t.Errorf("%s has no field for %s, want one", out, member)
		}
	}
}

// names collects the JSON names of a struct's fields.
func names(t reflect.Type, into map[string]bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names(f.Type, into)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		into[name] = true
	}
}
