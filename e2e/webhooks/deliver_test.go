package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
	"github.com/parley-dev/parley/internal/webhook"
)

// title is the title of the proposal that the delivered event is about.
const title = `Retry "webhooks" — é, 日本, <b>&amp;</b>`

// delivered is a request that a receiver got during the rotation of the webhook's secret.
type delivered struct {
	secret, oldSecret string
	publicKey         string
	headers           map[string]string // names in lower case
	body              string
}

// deliver returns the delivery of an event of the type proposal.submitted.
func deliver(t *testing.T, f webhook.Format) delivered {
	t.Helper()
	arrived := make(chan delivered, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		d := delivered{body: string(body), headers: map[string]string{}}
		for name, values := range r.Header {
			d.headers[strings.ToLower(name)] = values[0]
		}
		arrived <- d
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	keys := sendFromServer(t, f, receiver.URL)
	select {
	case d := <-arrived:
		d.secret, d.oldSecret, d.publicKey = keys.secret, keys.oldSecret, keys.publicKey
		return d
	case <-time.After(servertest.Patience):
		t.Fatal("nothing was delivered")
		return delivered{}
	}
}

// sendFromServer starts a server, creates a webhook, rotates its secret with an overlap, and
// submits a proposal.
func sendFromServer(t *testing.T, f webhook.Format, to string) delivered {
	t.Helper()
	p, err := servertest.Start(exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(),
		"--outbound-allow", "127.0.0.1"), "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	var created, rotated struct {
		ID        string
		Secret    string
		PublicKey string `json:"public_key"`
	}
	org := p.URL + "/api/v1/orgs/main"
	post(t, org+"/webhooks", p.Key, map[string]any{
		"url": to, "types": []string{"proposal.submitted"}, "format": f,
	}, &created)
	post(t, org+"/webhooks/"+created.ID+"/rotate", p.Key, map[string]any{"overlap_seconds": 3600}, &rotated)
	post(t, org+"/proposals", p.Key, map[string]any{
		"title": title, "category": "reliability", "problem": "A delivery that fails once is lost.",
		"suggested_fix": "Retry it.",
	}, nil)
	return delivered{secret: rotated.Secret, oldSecret: created.Secret, publicKey: created.PublicKey}
}

// post makes a request that must succeed.
func post(t *testing.T, url, key string, body, into any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("POST %s: %s %s %v", url, res.Status, answer, err)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatalf("POST %s: %v in %s", url, err, answer)
		}
	}
}

// with returns the delivery as a request that is verified with a secret.
func (d delivered) with(f webhook.Format, secret string) request {
	return request{Format: string(f), Secret: secret, Headers: d.headers, Body: d.body}
}

// signedAt returns the delivery as if it had been sent at another time, with a valid signature.
func (d delivered) signedAt(t *testing.T, f webhook.Format, at time.Time) request {
	t.Helper()
	secret, err := webhook.ParseSecret(d.secret)
	if err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{}
	for name, value := range d.headers {
		headers[name] = value
	}
	headers["webhook-timestamp"] = fmt.Sprint(at.Unix())
	headers["webhook-signature"] = webhook.Secrets{Current: secret}.Sign(d.headers["webhook-id"], at, []byte(d.body))
	return request{Format: string(f), Secret: d.secret, Headers: headers, Body: d.body}
}
