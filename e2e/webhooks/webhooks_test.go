package webhooks

import (
	"crypto/ed25519"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/webhook"
)

// Every library accepts a delivery in every format, with either secret of a rotation and with the
// public key, and refuses forged and old ones.
func TestLibrariesVerifyDeliveries(t *testing.T) {
	t.Parallel()
	for _, f := range webhook.Formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			d := deliver(t, f)
			checkHeaders(t, f, d)
			cases, requests := variants(t, f, d)
			for language, receive := range receivers {
				t.Run(language, func(t *testing.T) {
					t.Parallel()
					for i, got := range receive(t, requests) {
						switch {
						case (got.Error == "") != cases[i].ok:
							t.Errorf("%s: error = %q, want accepted: %v", cases[i].what, got.Error, cases[i].ok)
						case cases[i].ok:
							checkEvent(t, f, d, got.Event)
						}
					}
				})
			}
		})
	}
}

// variant is a request, and whether a receiver must accept it.
type variant struct {
	what string
	ok   bool
}

func variants(t *testing.T, f webhook.Format, d delivered) (cases []variant, requests []request) {
	t.Helper()
	add := func(what string, ok bool, r request) {
		cases, requests = append(cases, variant{what, ok}), append(requests, r)
	}
	with := func(change func(*request)) request {
		r := d.with(f, d.secret)
		change(&r)
		return r
	}
	add("the new secret", true, d.with(f, d.secret))
	add("the old secret", true, d.with(f, d.oldSecret))
	add("another secret", false, d.with(f, webhook.FormatSecret(webhook.NewSecret())))
	add("a changed body", false, with(func(r *request) { r.Body = strings.Replace(r.Body, "Retry", "Drop", 1) }))
	add("a longer body", false, with(func(r *request) { r.Body += " " }))
	now := time.Now()
	add("sent again now", true, d.signedAt(t, f, now))
	add("sent ten minutes ago", false, d.signedAt(t, f, now.Add(-10*time.Minute)))
	add("sent in ten minutes", false, d.signedAt(t, f, now.Add(10*time.Minute)))

	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	add("the public key", true, with(func(r *request) { r.PublicKey = d.publicKey }))
	add("another public key", false, with(func(r *request) { r.PublicKey = webhook.FormatPublicKey(public) }))
	add("a changed body and the public key", false, with(func(r *request) {
		r.PublicKey, r.Body = d.publicKey, strings.Replace(r.Body, "Retry", "Drop", 1)
	}))
	return cases, requests
}

var headerForms = map[string]*regexp.Regexp{
	"webhook-id":        regexp.MustCompile(`^evt-[0-9a-z]+$`),
	"webhook-timestamp": regexp.MustCompile(`^\d{10}$`),
	"webhook-signature": regexp.MustCompile(`^v1,[+/0-9A-Za-z]{43}= v1,[+/0-9A-Za-z]{43}= v1a,[+/0-9A-Za-z]{86}==$`),
}

func checkHeaders(t *testing.T, f webhook.Format, d delivered) {
	t.Helper()
	for name, form := range headerForms {
		if !form.MatchString(d.headers[name]) {
			t.Errorf("%s = %q, want %s", name, d.headers[name], form)
		}
	}
	want := "application/json"
	if f == webhook.CloudEvents {
		want = "application/cloudevents+json; charset=utf-8"
	}
	if got := d.headers["content-type"]; got != want {
		t.Errorf("content-type = %q, want %q", got, want)
	}
}

// checkEvent checks what a library parsed.
func checkEvent(t *testing.T, f webhook.Format, d delivered, got map[string]any) {
	t.Helper()
	is := func(name string, want any) {
		t.Helper()
		if fmt.Sprint(got[name]) != fmt.Sprint(want) {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if f == webhook.Slack {
		line := fmt.Sprint(got["text"])
		if !strings.Contains(line, "submitted the proposal “Retry \"webhooks\" — é, 日本, &lt;b&gt;") ||
			!strings.Contains(line, "|Open>") {
			t.Errorf("text = %q, want a line about the proposal", line)
		}
		return
	}
	data, _ := got["data"].(map[string]any)
	if data["title"] != title {
		t.Errorf("title = %v, want %q", data["title"], title)
	}
	is("subject", "proposal:"+fmt.Sprint(data["id"]))
	if ref := fmt.Sprint(got["actor"]); !strings.HasPrefix(ref, "user:") {
		t.Errorf("actor = %s, want a user", ref)
	}
	if f == webhook.Standard {
		is("type", "proposal.submitted")
		is("version", 1)
		checkTime(t, got["timestamp"])
		return
	}
	is("type", "dev.parley.proposal.submitted")
	is("specversion", "1.0")
	is("id", d.headers["webhook-id"])
	is("datacontenttype", "application/json")
	is("dataversion", 1)
	checkTime(t, got["time"])
	if s := fmt.Sprint(got["source"]); !strings.HasSuffix(s, "/api/v1/orgs/main") || !strings.HasPrefix(s, "http") {
		t.Errorf("source = %s, want the URL of the org", s)
	}
	if s := fmt.Sprint(got["sequence"]); len(s) != 19 {
		t.Errorf("sequence = %q, want 19 digits", s)
	}
}

func checkTime(t *testing.T, got any) {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(got))
	if err != nil || time.Since(at) > time.Hour || time.Until(at) > time.Hour {
		t.Errorf("time = %v, want the time of the event", got)
	}
}
