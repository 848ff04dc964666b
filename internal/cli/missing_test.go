package cli

import (
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// missingCase is a call about things that do not exist.
type missingCase struct {
	args  []string // after the command; they are valid
	names []string // what the error must have, with IN for the place; none: only the org is missing
}

// missingCases has an entry for every command with --org.
var missingCases = map[string][]missingCase{
	"proposal list":     {{}},
	"proposal submit":   {{args: []string{"--title=T", "--category=process", "--problem=P", "--fix=F"}}},
	"proposal show":     {{[]string{"prop-nope"}, []string{`proposal "prop-nope" not found IN`, "parley proposal list --status all --server SERVER"}}},
	"proposal edit":     {{[]string{"prop-nope", "--title", "T"}, []string{`proposal "prop-nope" not found IN`}}},
	"proposal vote":     {{[]string{"prop-nope", "for"}, []string{`proposal "prop-nope" not found IN`}}},
	"proposal withdraw": {{[]string{"prop-nope"}, []string{`proposal "prop-nope" not found IN`}}},
	"proposal votes":    {{[]string{"prop-nope"}, []string{`proposal "prop-nope" not found IN`}}},
	"proposal history":  {{[]string{"prop-nope"}, []string{`proposal "prop-nope" not found IN`}}},
	"proposal approve":  {{[]string{"prop-nope"}, []string{`proposal "prop-nope" not found IN`}}},
	"proposal reject":   {{[]string{"prop-nope", "--note", "N"}, []string{`proposal "prop-nope" not found IN`}}},
	"proposal reopen":   {{[]string{"prop-nope"}, []string{`proposal "prop-nope" not found IN`}}},
	"proposal resolve":  {{[]string{"prop-nope"}, []string{`proposal "prop-nope" not found IN`}}},

	"followup list": {{}, {[]string{"--proposal", "prop-nope"}, []string{`proposal "prop-nope" not found IN`}}},
	"followup show": {{[]string{"fup-nope"}, []string{`follow-up "fup-nope" not found IN`, "parley followup list"}}},
	"followup create": {
		{[]string{"--title", "T", "--assignee", "user:nope"}, []string{`user "nope" not found IN`, "parley user list"}},
		{[]string{"--title", "T", "--assignee", "agent:nope"}, []string{`agent "nope" not found IN`}},
	},
	"followup assign": {{[]string{"fup-nope", "none"}, []string{`follow-up "fup-nope" not found IN`}}},
	"followup start":  {{[]string{"fup-nope"}, []string{`follow-up "fup-nope" not found IN`}}},
	"followup done":   {{[]string{"fup-nope"}, []string{`follow-up "fup-nope" not found IN`}}},
	"followup cancel": {{[]string{"fup-nope"}, []string{`follow-up "fup-nope" not found IN`}}},
	"followup reopen": {{[]string{"fup-nope"}, []string{`follow-up "fup-nope" not found IN`}}},

	"friction list":   {{}},
	"friction show":   {{[]string{"nope"}, []string{`friction "nope" not found IN`, "parley friction list"}}},
	"friction report": {{args: []string{"f", "--title=T", "--category=process", "--problem=P"}}},

	"events": {{}, {args: []string{"--follow"}}},

	"task send": {
		{[]string{"nope", "hi"}, []string{`agent "nope" not found on SERVER`, "parley agent card"}},
		{[]string{"nope", "hi", "--wait"}, []string{`agent "nope" not found on SERVER`}},
		{[]string{"nope", "hi", "--stream"}, []string{`agent "nope" not found on SERVER`}},
	},
	"task get": {
		{[]string{"nope", "t-1"}, []string{`agent "nope" not found on SERVER`}},
		{[]string{"echo", "t-nope"}, []string{`task "t-nope" not found`, "parley task list"}},
	},
	"task watch":  {{[]string{"echo", "t-nope"}, []string{`task "t-nope" not found`}}},
	"task cancel": {{[]string{"echo", "t-nope"}, []string{`task "t-nope" not found`}}},
	"task rerun": {
		{[]string{"echo", "t-nope"}, []string{`task "t-nope" not found`}},
		{[]string{"--uid", "nope"}, []string{`task "nope" not found IN`}},
	},
	"task list":       {{}},
	"task push":       {{}, {[]string{"nope"}, []string{`task "nope" not found IN`}}},
	"task push-retry": {{[]string{"nope", "push-1"}, []string{`push configuration "push-1 of task nope" not found IN`}}},

	"agent create":  {{args: []string{"x", "--name", "X"}}},
	"agent list":    {{}},
	"agent status":  {{}, {[]string{"nope"}, []string{`agent "nope" not found IN`, "parley agent list"}}},
	"agent find":    {{}},
	"agent usage":   {{}, {[]string{"nope"}, []string{`agent "nope" not found IN`}}},
	"agent refresh": {{[]string{"nope"}, []string{`agent "nope" not found IN`}}},
	"agent update":  {{[]string{"nope", "--name", "X"}, []string{`agent "nope" not found IN`}}},
	"agent disable": {{[]string{"nope"}, []string{`agent "nope" not found IN`}}},
	"agent enable":  {{[]string{"nope"}, []string{`agent "nope" not found IN`}}},
	"agent release": {{[]string{"nope"}, []string{`agent "nope" not found IN`, "parley agent list --data"}}},

	"user create":    {{args: []string{"x"}}},
	"user list":      {{}},
	"user promote":   {{[]string{"nope"}, []string{`user "nope" not found IN`, "parley user list"}}},
	"user demote":    {{[]string{"nope"}, []string{`user "nope" not found IN`, "parley user list"}}},
	"service create": {{args: []string{"x"}}},
	"service list":   {{}},
	"admin link":     {{[]string{"--user", "nope"}, []string{`user "nope" not found IN`, "parley user list --data"}}},

	"member list":   {{}},
	"member create": {{args: []string{"user:x"}}},
	"member disable": {
		{[]string{"service:nope"}, []string{`service "nope" not found IN`, "parley service list"}},
	},
	"member enable":  {{[]string{"user:nope"}, []string{`user "nope" not found IN`}}},
	"member promote": {{[]string{"user:nope"}, []string{`user "nope" not found IN`}}},
	"member demote":  {{[]string{"user:nope"}, []string{`user "nope" not found IN`}}},
	"member erase": {
		{[]string{"user:nope", "--yes"}, []string{`user "nope" not found IN`, "parley user list"}},
	},
	"invite create":      {{args: []string{"x"}}},
	"invite list":        {{}},
	"invite revoke":      {{[]string{"inv-nope"}, []string{`invitation "inv-nope" not found IN`, "parley invite list"}}},
	"client create":      {{args: []string{"N", "--redirect", "https://x.example/done"}}},
	"client list":        {{}},
	"client show":        {{[]string{"client-nope"}, []string{`client "client-nope" not found IN`, "parley client list"}}},
	"client update":      {{[]string{"client-nope", "--name", "N"}, []string{`client "client-nope" not found IN`}}},
	"client rotate":      {{[]string{"client-nope"}, []string{`client "client-nope" not found IN`}}},
	"client delete":      {{[]string{"client-nope"}, []string{`client "client-nope" not found IN`}}},
	"webhook create":     {{args: []string{"https://x.example/hook"}}},
	"webhook list":       {{}},
	"webhook show":       {{[]string{"hook-nope"}, []string{`webhook "hook-nope" not found IN`, "parley webhook list"}}},
	"webhook update":     {{[]string{"hook-nope", "--types", "all"}, []string{`webhook "hook-nope" not found IN`}}},
	"webhook pause":      {{[]string{"hook-nope"}, []string{`webhook "hook-nope" not found IN`}}},
	"webhook resume":     {{[]string{"hook-nope"}, []string{`webhook "hook-nope" not found IN`}}},
	"webhook rotate":     {{[]string{"hook-nope"}, []string{`webhook "hook-nope" not found IN`}}},
	"webhook ping":       {{[]string{"hook-nope"}, []string{`webhook "hook-nope" not found IN`}}},
	"webhook deliveries": {{[]string{"hook-nope"}, []string{`webhook "hook-nope" not found IN`}}},
	"webhook redeliver":  {{[]string{"hook-nope", "evt-1"}, []string{`webhook "hook-nope" not found IN`}}},
	"webhook delete":     {{[]string{"hook-nope"}, []string{`webhook "hook-nope" not found IN`}}},
	"audit":              {{}},
	"whoami":             {{}},
	"agent card":         {{}},

	"key create": {
		{[]string{"--scope=svc:tasks:read", "--as", "agent:nope"}, []string{`agent "nope" not found IN`, "parley agent list"}},
		{[]string{"--scope=svc:tasks:read", "--as", "service:nope"}, []string{`service "nope" not found IN`}},
		{[]string{"--scope=svc:tasks:read", "--as", "user:nope"}, []string{`user "nope" not found IN`}},
	},
	"key list":   {{}, {[]string{"--as", "user:nope"}, []string{`user "nope" not found IN`, "parley user list"}}},
	"key show":   {{[]string{"key-nope"}, []string{`key "key-nope" not found IN`, "parley key list"}}},
	"key revoke": {{[]string{"key-nope"}, []string{`key "key-nope" not found IN`, "parley key list"}}},
	"key rotate": {{[]string{"key-nope"}, []string{`key "key-nope" not found IN`}}},
}

// Every error for something that does not exist names it, where it was looked for, and a
// command that helps. Every command with --org is tried, on each target that it has.
func TestErrorsNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	k, err := newParser(io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	targets := []struct {
		flag      string
		args      []string
		in, noOrg string
	}{
		{
			"server",
			[]string{"--server", site.url, "--key", site.key},
			`in org "main" on ` + site.url, `org "nope" not found on ` + site.url + `; you are user:admin of org "main"`,
		},
		{
			"data",
			[]string{"--data", site.data},
			`in org "main" in store ` + site.data, `org "nope" not found in store ` + site.data + `; run "parley org list`,
		},
	}
	for _, n := range k.Model.Leaves(true) {
		has := map[string]bool{}
		for _, f := range n.Flags {
			has[f.Name] = true
		}
		path := n.Path()
		cases := missingCases[path]
		if has["org"] && len(cases) == 0 {
			t.Errorf("%s: no case for what it does not find", path)
		}
		for _, target := range targets {
			if !has[target.flag] {
				continue
			}
			for i, c := range cases {
				args := slices.Concat(strings.Fields(path), c.args, target.args)
				if i == 0 {
					failsWith(t, append(args, "--org", "nope"), target.noOrg)
				}
				for _, name := range c.names {
					failsWith(t, args, strings.NewReplacer("IN", target.in, "SERVER", site.url).Replace(name))
				}
			}
		}
	}
}

func failsWith(t *testing.T, args []string, want string) {
	t.Helper()
	code, stdout, stderr := run(t, args...)
	if code == exitOK || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("%v: code %d, stdout %q; want an error with %q:\n%s", args, code, stdout, want, stderr)
	}
}

// Errors about keys, logins and data folders name them, too.
func TestErrorsNameTheCredentialsAndTheStore(t *testing.T) {
	t.Parallel()
	server := []string{"--server", site.url}
	noKey := "no API key and no login for " + site.url
	failsWith(t, append([]string{"proposal", "list"}, server...), noKey+`; run "parley login --server `)
	failsWith(t, append([]string{"agent", "list"}, server...), noKey)
	failsWith(t, append([]string{"agent", "list"}, server...), "--data or --database")
	failsWith(t, append([]string{"proposal", "list", "--key", "parley_" + strings.Repeat("0", 36)}, server...),
		site.url+` does not accept the API key "parley_00000…"`)
	failsWith(t, []string{"agent", "list", "--data", "no/folder"}, `data folder "no/folder" not found`)
	failsWith(t, []string{"org", "list", "--data", "no/folder"}, `data folder "no/folder" not found`)
}

// A server that is not there is named, also by commands that accept a server or a store.
func TestErrorsNameTheServer(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, args := range [][]string{{"proposal", "list"}, {"agent", "list"}, {"task", "send", "echo", "hi"}, {"whoami"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			code, _, stderr := run(t, append(args, "--server", closed.URL, "--key", "k")...)
			if code != exitFailed || !strings.Contains(stderr, "cannot reach "+closed.URL) ||
				strings.Count(stderr, "trying again") != 1 {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
	}
}

// A certificate that is not trusted, or the wrong scheme, does not get better by waiting.
func TestPermanentErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	for server, want := range map[string]string{
		secure.URL: "certificate",
		strings.Replace(plain.URL, "http://", "https://", 1):  "server gave HTTP response to HTTPS client",
		strings.Replace(secure.URL, "https://", "http://", 1): "does it need https://?",
	} {
		code, _, stderr := run(t, "proposal", "list", "--org", "main", "--server", server, "--key", "k")
		if code != exitFailed || !strings.Contains(stderr, want) || !strings.Contains(stderr, server) ||
			strings.Contains(stderr, "again") {
			t.Errorf("%s: code %d: %s", server, code, stderr)
		}
	}
}
