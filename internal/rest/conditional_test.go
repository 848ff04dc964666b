package rest

import (
	"fmt"
	"net/http"
	"testing"
)

func TestIfMatchRefusesWhatWasDecidedOnAnOlderRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	path := proposals + "/" + w.submit(ada, "acme").ID
	tag := w.do(ada, "GET", path, "").want(200).Header.Get("ETag")

	for _, bad := range []string{
		"W/" + tag, `"x"`, `"v1"`, tag[1 : len(tag)-1], "v1", `""`, `"v-1-x"`,
		`"v99999999999999999999-x"`, `"v+1-x"`,
	} {
		if p := w.do(ada, "PATCH", path, `{"title":"x"}`, "If-Match", bad).want(412).problem(); p.Code != "request.stale" {
			t.Errorf("%s: got %+v, want Code request.stale", bad, p)
		}
	}
	res := w.do(ada, "PATCH", path, `{"title":"x"}`, "If-Match", tag).want(200)
	if next := res.Header.Get("ETag"); next == tag || next == "" {
		t.Errorf("ETag = %q, want another one than %q", next, tag)
	}
	w.do(ada, "PATCH", path, `{"title":"y"}`, "If-Match", tag).want(412)
	w.do(ada, "PATCH", path, `{"status":"approved"}`, "If-Match", tag).want(412)
	// A list in one header or in several, and "*".
	fresh := res.Header.Get("ETag")
	res = w.do(ada, "PATCH", path, `{"title":"z"}`, "If-Match", `"other", `+tag+", "+fresh).want(200)
	w.do(ada, "PATCH", path, `{"title":"zz"}`, "If-Match", tag+", "+fresh).want(412)
	w.do(ada, "PATCH", path, `{"title":"zz"}`, "If-Match", tag, "If-Match", res.Header.Get("ETag")).want(200)
	w.do(ada, "PATCH", path, `{"title":"zzz"}`, "If-Match", "*").want(200)
	// A vote is a change, too.
	tag = w.do(ada, "GET", path, "").want(200).Header.Get("ETag")
	w.do(bob, "POST", path+"/vote", `{"vote":"for"}`).want(200)
	w.do(ada, "PATCH", path, `{"status":"approved"}`, "If-Match", tag).want(412)
	tag = w.do(ada, "GET", path, "").want(200).Header.Get("ETag")
	w.do(ada, "PATCH", path, `{"status":"approved"}`, "If-Match", tag).want(200)
}

func TestIfNoneMatchSparesTheBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	path := proposals + "/" + w.submit(ada, "acme").ID
	res := w.do(ada, "GET", path, "").want(200)
	tag := res.Header.Get("ETag")
	if res.Header.Get("Cache-Control") != "private, no-cache" || res.Header.Get("Vary") != "Authorization" {
		t.Errorf("headers: got %v, want Cache-Control private, no-cache, Vary Authorization", res.Header)
	}
	for _, h := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		res := w.do(ada, "GET", path, "", "If-None-Match", h).want(304)
		if res.Body != "" || res.Header.Get("ETag") != tag || res.Header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: got %q %v, want Body empty, ETag %v, Cache-Control private, no-cache", h, res.Body, res.Header, tag)
		}
	}
	w.do(ada, "GET", path, "", "If-None-Match", `"x"`).want(200)
	// Another viewer sees another my_vote, so the ETag must differ.
	w.do(ada, "POST", path+"/vote", `{"vote":"for"}`).want(200)
	mine := w.do(ada, "GET", path, "").want(200).Header.Get("ETag")
	w.do(bob, "GET", path, "", "If-None-Match", mine).want(200)
	w.do(ada, "GET", path, "", "If-None-Match", tag).want(200)
}

func TestTasksHaveVersionsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	res := w.do(ada, "POST", "/api/v1/orgs/acme/followups", `{"title":"x"}`).want(201)
	path, tag := res.Header.Get("Location"), res.Header.Get("ETag")
	w.do(bob, "GET", path, "", "If-None-Match", tag).want(304)
	w.do(bob, "PATCH", path, `{"title":"y"}`, "If-Match", tag).want(200)
	w.do(ada, "PATCH", path, `{"title":"z"}`, "If-Match", tag).want(412)
	w.do(ada, "GET", path, "", "If-None-Match", tag).want(200)
	w.do(ada, "PATCH", path, `{"title":"z"}`, "If-Match", `"v1-x", "v2-x"`).want(200)
}

func TestAnIdempotencyKeyMakesARetrySafe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	const once = "Idempotency-Key"
	first := w.do(ada, "POST", proposals, submission, once, "k1").want(201)
	if first.Header.Get("Idempotency-Replayed") != "" {
		t.Error("the first response claims to be a replay")
	}
	// The order of members and white space do not matter.
	again := w.do(ada, "POST", proposals,
		`{ "category":"reliability","title":"Retry webhooks","suggested_fix":"Retry.", "problem":"They get \u006cost."}`,
		once, "k1").want(201)
	if again.Body != first.Body || again.Header.Get("Idempotency-Replayed") != "true" ||
		again.Header.Get("Location") != first.Header.Get("Location") || again.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("replay: got %v %s, want %v %s", again.Header, again.Body, first.Header, first.Body)
	}
	if p := w.do(ada, "POST", proposals, with("title", "other"), once, "k1").want(422).
		problem(); p.Code != "idempotency.key_reused" {
		t.Errorf("got %+v, want Code idempotency.key_reused", p)
	}
	// Keys are separate per principal and operation.
	if res := w.do(bob, "POST", proposals, submission, once, "k1").want(201); res.Body == first.Body {
		t.Error("another principal got the first one's proposal")
	}
	var p Proposal
	first.into(&p)
	path := proposals + "/" + p.ID
	for i, c := range []struct{ method, path, body string }{
		{"POST", path + "/vote", `{"vote":"for"}`},
		{"PATCH", path, `{"title":"x"}`},
		{"PATCH", path, `{"status":"approved"}`},
		{"POST", "/api/v1/orgs/acme/followups", `{"title":"x"}`},
	} {
		key := fmt.Sprintf("k1-%d", i)
		first := w.do(ada, c.method, c.path, c.body, once, key)
		again := w.do(ada, c.method, c.path, c.body, once, key)
		if first.Status >= 300 || again.Status != first.Status || again.Body != first.Body ||
			again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s %s: got %d %s, then %d %s; want a replay",
				c.method, c.path, first.Status, first.Body, again.Status, again.Body)
		}
	}
}

func TestABadIdempotencyKeyIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	long := make([]byte, 256)
	for i := range long {
		long[i] = 'x'
	}
	for _, headers := range [][]string{
		{"Idempotency-Key", ""},
		{"Idempotency-Key", string(long)},
		{"Idempotency-Key", "schlüssel"},
		{"Idempotency-Key", "a", "Idempotency-Key", "a"},
	} {
		p := w.do(ada, "POST", proposals, submission, headers...).want(http.StatusUnprocessableEntity).problem()
		if got := at(p); len(got) != 1 || got[0] != "header:Idempotency-Key" {
			t.Errorf("%.40q: got %+v, want len(got) 1, got[0] header:Idempotency-Key", headers, p)
		}
	}
}
