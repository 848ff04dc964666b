package webhook_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"mime"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/rest"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/webhook"
)

var update = flag.Bool("update", false, "write the golden file anew")

const base = "https://parley.example"

var at = time.Date(2026, 3, 1, 10, 30, 0, 120_000_000, time.FixedZone("", 3600))

// sample returns an event of a type, with the data that the store writes. name is the title or
// the name of the record.
func sample(t event.Type, name string) event.Event {
	about, _, _ := strings.Cut(string(t), ".")
	records, ada := rest.Records{}, identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	var id string
	var data json.RawMessage
	switch about {
	case "proposal":
		id = "prop-1"
		data = records.Proposal(&proposal.Proposal{
			ID: id, Title: name, Status: proposal.Open, Problem: "It is slow.", SubmittedBy: "agent:scout", SubmittedAt: at,
			UpdatedAt: at, VotesFor: 3, VotesAgainst: 1, AgentsFor: 1, TextVersion: 1,
		})
	case "followup":
		id = "fup-1"
		data = records.Followup(&followup.Followup{
			ID: id, Title: name, Status: followup.Open, Assignee: "agent:fixer", CreatedBy: "user:ada", CreatedAt: at,
			UpdatedAt: at,
		})
	case "friction":
		id = "registry:timeout"
		data = records.Friction(&friction.Friction{
			Fingerprint: id, Title: name, Count: 4, FirstAt: at, LastAt: at, LastBy: "agent:scout",
		})
	case "task":
		id = "01k5"
		data = records.Task(&task.Task{
			UID: id, Agent: "scout", Sender: ada, ID: name, State: task.Working, CreatedAt: at, UpdatedAt: at,
		})
	case "agent":
		id = "scout"
		data = records.Agent(&agent.Agent{ID: id, Name: name, CreatedAt: at, UpdatedAt: at, Pinned: "busy"}, "busy")
	case "member":
		id = "user:ada"
		data = records.Member(&identity.Member{Principal: ada, Name: name, CreatedAt: at})
	case "key":
		id = "key-1"
		data = records.Key(&identity.Key{ID: id, Principal: ada, Name: name, CreatedAt: at, CreatedBy: "user:ada"})
	case "client":
		id = "client-1"
		data = records.Client(&oauth.Client{ID: id, Name: name, CreatedAt: at, CreatedBy: "user:ada"})
	case "invitation":
		id = "inv-1"
		data = records.Invitation(&identity.Invitation{
			ID: id, User: "bob", Name: name, CreatedAt: at, CreatedBy: "user:ada", ExpiresAt: at,
		})
	case "webhook":
		id = "hook-1"
		data, _ = json.Marshal(map[string]string{"id": id, "url": "https://chat.example/a-secret", "description": name})
	default:
		panic("no sample of " + string(t))
	}
	return event.Event{
		Org: "acme", Seq: 42, ID: "evt-abc", Type: t, At: at, Subject: about + ":" + id, Actor: "user:ada",
		Version: 1, Data: data,
	}
}

// hostile are names that try to break out of a format.
var hostile = map[string]string{
	"plain":          "Retry webhook deliveries",
	"quotes":         `a "quoted" \ 'name' </script>`,
	"lines":          "one\ntwo\r\nthree\u2028four\tfive\x00\x1b[2J",
	"slack mentions": "<!channel> <!here|x> <@U123> <#C1> @here @everyone @all",
	"slack link":     "<https://evil.example|Open> &lt;!channel&gt;",
	"markdown":       "[Open](https://evil.example) ![](https://evil.example/x.png) **b** `c` ||d|| # e > f \\",
	"long":           strings.Repeat("é&<>", 5000),
	"right to left":  "שלום \u202etxt.exe\u2066 مرحبا",
	"template":       "%s %d {{.}} ${x}",
	"blank":          " \n ",
}

// Every type in every format is one JSON object with the promised members.
func TestEveryTypeInEveryFormat(t *testing.T) {
	t.Parallel()
	for _, k := range event.Kinds {
		for what, name := range hostile {
			e := sample(k.Type, name)
			for _, f := range webhook.Formats {
				contentType, body := webhook.Encode(f, &e, base)
				where := fmt.Sprintf("%s as %s, %s", k.Type, f, what)
				if _, _, err := mime.ParseMediaType(contentType); err != nil {
					t.Errorf("%s: content type %q: %v", where, contentType, err)
				}
				var got map[string]json.RawMessage
				if err := json.Unmarshal(body, &got); err != nil || !utf8.Valid(body) {
					t.Errorf("%s: %v in %q", where, err, body)
					continue
				}
				for name, want := range membersOf(f, &e) {
					if string(got[name]) != want {
						t.Errorf("%s: %s = %s, want %s", where, name, got[name], want)
					}
				}
				if f == webhook.Slack {
					checkLine(t, where, got)
				}
			}
		}
	}
}

// membersOf returns the members that the body must have, as JSON.
func membersOf(f webhook.Format, e *event.Event) map[string]string {
	const time = `"2026-03-01T09:30:00.120000Z"`
	quoted := func(s string) string { return `"` + s + `"` }
	switch f {
	case webhook.Standard:
		return map[string]string{
			"type": quoted(string(e.Type)), "timestamp": time, "data": string(e.Data), "subject": quoted(e.Subject),
			"actor": `"user:ada"`, "seq": "42", "version": "1",
		}
	case webhook.CloudEvents:
		return map[string]string{
			"specversion": `"1.0"`, "id": `"evt-abc"`, "source": quoted(base + "/api/v1/orgs/acme"),
			"type": quoted("dev.parley." + string(e.Type)), "subject": quoted(e.Subject), "time": time,
			"datacontenttype": `"application/json"`, "data": string(e.Data), "sequence": `"0000000000000000042"`,
			"actor": `"user:ada"`, "dataversion": "1",
		}
	}
	return map[string]string{"allowed_mentions": `{"parse":[]}`}
}

var (
	slackSequence = regexp.MustCompile(`<[^>]*>?`)
	slackLink     = regexp.MustCompile(`^<https://parley\.example/orgs/acme/[^|<> ]*\|Open>$`)
	discordLink   = regexp.MustCompile(` \[Open\]\(<https://parley\.example/orgs/acme/[^<> ]*>\)$`)
	mention       = regexp.MustCompile(`@\w`)
	unescaped     = regexp.MustCompile("(?:^|[^\\\\])(?:\\\\\\\\)*[*_`|<>\\[\\]#~]")
)

// checkLine checks that a chat message is one short line, in which the only link is ours.
func checkLine(t *testing.T, where string, got map[string]json.RawMessage) {
	t.Helper()
	var text, content string
	if err := json.Unmarshal(got["text"], &text); err != nil {
		t.Errorf("%s: text: %v", where, err)
	}
	if err := json.Unmarshal(got["content"], &content); err != nil {
		t.Errorf("%s: content: %v", where, err)
	}
	if len(got) != 3 {
		t.Errorf("%s: %d members, want 3", where, len(got))
	}
	for member, s := range map[string]string{"text": text, "content": content} {
		if n := utf8.RuneCountInString(s); n < 10 || n > 2000 {
			t.Errorf("%s: %s has %d characters, want 10 to 2000", where, member, n)
		}
		if strings.ContainsAny(s, "\n\r\t\x00\x1b\u2028\u202e\u2066") || mention.MatchString(s) {
			t.Errorf("%s: %s has a line break, a control character or a mention: %q", where, member, s)
		}
		if strings.Contains(s, "a-secret") {
			t.Errorf("%s: %s shows the URL of a webhook: %q", where, member, s)
		}
	}
	found := slackSequence.FindAllString(text, -1)
	if len(found) > 1 || len(found) == 1 && !slackLink.MatchString(found[0]) {
		t.Errorf("%s: text has %q, want at most a link to the dashboard", where, found)
	}
	if strings.Contains(text, "](") {
		t.Errorf("%s: text has a link of Mattermost: %q", where, text)
	}
	plain := discordLink.ReplaceAllString(content, "")
	if bad := unescaped.FindString(plain); bad != "" {
		t.Errorf("%s: content has an unescaped %q: %q", where, bad, content)
	}
}

// TestBodies compares bodies with testdata/bodies.txt, which people read, too: it shows what
// receivers get.
func TestBodies(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	show := func(f webhook.Format, e event.Event, base string) {
		contentType, body := webhook.Encode(f, &e, base)
		fmt.Fprintf(&b, "%s as %s, %s\n%s\n\n", e.Type, f, contentType, body)
	}
	fixed := func(e event.Event, data string) event.Event {
		e.Data = json.RawMessage(data)
		return e
	}
	voted := fixed(sample(event.ProposalVoted, ""), `{"id":"prop-1","title":"Retry <b>","votes_for":3,"votes_against":1}`)
	ping := fixed(sample(webhook.Ping, ""), `{"id":"hook-1","description":"Alerts"}`)
	ping.Seq = 0
	system := sample(event.WebhookFailed, "Alerts")
	system.Actor = event.System
	bare := event.Event{Org: "acme", ID: "evt-bare", Type: "later.type", At: at, Subject: "later:1", Actor: "operator"}
	unassigned := sample(event.FollowupAssigned, "Write the runbook")
	unassigned.Data = json.RawMessage(strings.Replace(string(unassigned.Data), `"agent:fixer"`, "null", 1))
	for _, f := range webhook.Formats {
		for _, e := range []event.Event{voted, ping, bare} {
			show(f, e, base)
		}
	}
	show(webhook.Slack, sample(event.TaskCompleted, "crm-4711"), base)
	show(webhook.Slack, system, base)
	show(webhook.Slack, unassigned, base)
	show(webhook.Slack, sample(event.ProposalApproved, hostile["plain"]), "") // no public URL
	show(webhook.CloudEvents, bare, "")
	for _, what := range []string{"slack mentions", "slack link", "markdown", "right to left", "lines", "blank"} {
		show(webhook.Slack, sample(event.ProposalSubmitted, hostile[what]), base)
	}
	b.WriteString("Lines of all types\n")
	for _, k := range event.Kinds {
		e := sample(k.Type, "Name")
		_, body := webhook.Encode(webhook.Slack, &e, base)
		var got struct{ Text string }
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n", k.Type, got.Text)
		if strings.Contains(got.Text, "caused the event") {
			t.Errorf("%s has no phrase", k.Type)
		}
	}
	golden := filepath.Join("testdata", "bodies.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("bodies differ from %s; run the test with -update if that is intended (-want +got):\n%s", golden, diff)
	}
}

// A subject may have any character in its id; the URL must not change its path by it.
func TestLinksEscapeIDs(t *testing.T) {
	t.Parallel()
	e := sample(event.FrictionReported, "x")
	e.Subject = "friction:a/../b?c#d|e>f g%2f"
	_, body := webhook.Encode(webhook.Slack, &e, base)
	var got struct{ Text string }
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	link := slackSequence.FindString(got.Text)
	u, err := url.Parse(strings.TrimSuffix(strings.TrimPrefix(link, "<"), "|Open>"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "/orgs/acme/friction/a/../b?c#d|e>f g%2f"; u.Path != want || strings.Count(u.EscapedPath(), "/") != 4 {
		t.Errorf("link = %s with the path %q, want %q", link, u.Path, want)
	}
}

// Sequence numbers of CloudEvents are compared as strings.
func TestSequencesSortAsStrings(t *testing.T) {
	t.Parallel()
	last := ""
	for _, n := range []int64{1, 9, 10, 999, 1000, 1 << 40, 1<<63 - 1} {
		e := sample(event.ProposalVoted, "x")
		e.Seq = n
		_, body := webhook.Encode(webhook.CloudEvents, &e, base)
		var got struct{ Sequence string }
		if err := json.Unmarshal(body, &got); err != nil || got.Sequence <= last {
			t.Errorf("sequence of %d = %q, %v, want it after %q", n, got.Sequence, err, last)
		}
		last = got.Sequence
	}
}
