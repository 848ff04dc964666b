package corpus

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// receiver receives pushes.
type receiver struct {
	mu     sync.Mutex
	status int
	got    []delivery
}

type delivery struct {
	line   string
	header http.Header
	body   string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, delivery{req.Method + " " + req.URL.RequestURI(), req.Header, string(b)})
	w.WriteHeader(r.status)
}

// take waits until the last delivery contains the text, and returns all of them.
func (r *receiver) take(s *session, last string) []delivery {
	s.Helper()
	var got []delivery
	eventually(s.T, "the receiver was told "+last, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := len(r.got); n == 0 || !strings.Contains(r.got[n-1].body, last) {
			return fmt.Errorf("%d deliveries", n)
		}
		got, r.got = r.got, nil
		return nil
	})
	return got
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// push covers deliveries to a receiver, and how admins see them.
func push(s *session) {
	s.cast()
	r := &receiver{status: http.StatusOK}
	site := httptest.NewServer(r)
	defer site.Close()
	s.names.set("receiver", strings.TrimPrefix(site.URL, "http://"))
	const claim, lease = "POST /api/v1/agents/push-bot/claim", "POST /api/v1/agents/push-bot/leases/"
	const org = "/api/v1/orgs/push/a2a"

	s.rpc("1.0: send with a config", "ann", "push-bot", "SendMessage",
		`{"message":`+say+`,"configuration":{"returnImmediately":true,`+
			`"taskPushNotificationConfig":{"url":"http://<receiver>/one","token":"token-of-ann",`+
			`"authentication":{"scheme":"Bearer","credentials":"sesame"}}}}`)
	s.do("claim", "worker", claim, `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("complete", "worker", lease+"<lease-1>",
		`{"status":"completed","artifacts":[{"name":"n","parts":[{"type":"text","text":"out"}]}]}`)
	s.pushed("1.0: pushed", r.take(s, "TASK_STATE_COMPLETED"))

	s.rpc("0.3: send with a config", "ann", "push-bot", "message/send",
		`{"message":{"kind":"message","messageId":"m-1","role":"user","parts":[{"kind":"text","text":"Hello."}]},`+
			`"configuration":{"blocking":false,"pushNotificationConfig":{"id":"cfg","url":"http://<receiver>/two?x=1"}}}`)
	s.do("claim", "worker", claim, `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("complete", "worker", lease+"<lease-2>",
		`{"status":"completed","artifacts":[{"name":"n","parts":[{"type":"text","text":"out"}]}]}`)
	s.pushed("0.3: pushed", r.take(s, `"completed"`))

	r.answer(http.StatusGone)
	s.rpc("a receiver that is gone", "ann", "push-bot", "SendMessage",
		`{"message":`+say+`,"configuration":{"returnImmediately":true,`+
			`"taskPushNotificationConfig":{"id":"gone","url":"http://<receiver>/gone"}}}`)
	s.do("claim", "worker", claim, `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	eventually(s.T, "the config is given up", func() error {
		if r := s.quiet("root", "GET "+org+"/push?state=dead", ""); !strings.Contains(r.body, `"gone"`) {
			return errStill(r.body)
		}
		return nil
	})
	s.do("configs that were given up", "root", "GET "+org+"/push?state=dead", "")
	s.do("configs of a task", "root", "GET "+org+"/tasks/<id-3>/push", "")
	r.take(s, "SUBMITTED")
	r.answer(http.StatusNoContent)
	s.do("retry", "root", "POST "+org+"/tasks/<id-3>/push/gone/retry", "", "Idempotency-Key: r")
	s.pushed("pushed again", r.take(s, "WORKING"))
	s.do("retry what is not there", "root", "POST "+org+"/tasks/<id-3>/push/nope/retry", "")
	s.do("without the scope", "ann", "POST "+org+"/tasks/<id-3>/push/gone/retry", "")
	s.do("configs of no task", "root", "GET "+org+"/tasks/nope/push", "")
	s.do("bad parameters", "root", "GET "+org+"/push?state=x&limit=0&cursor=y", "")
	s.do("list without the scope", "ann", "GET "+org+"/push", "")
}

// pushed records deliveries. Signatures are checked, and recorded by the result.
func (s *session) pushed(title string, got []delivery) {
	s.Helper()
	var keys struct {
		Keys []struct{ Crv, X string }
	}
	_ = json.Unmarshal([]byte(s.quiet("", "GET /.well-known/jwks.json", "").body), &keys)
	for _, d := range got {
		h := d.header.Clone()
		content := h.Get("Webhook-Id") + "." + h.Get("Webhook-Timestamp") + "." + d.body
		for _, sig := range strings.Fields(h.Get("Webhook-Signature")) {
			kind, text, _ := strings.Cut(sig, ",")
			raw, _ := base64.StdEncoding.DecodeString(text)
			valid := false
			switch kind {
			case "v1a":
				for _, k := range keys.Keys {
					if key, err := base64.RawURLEncoding.DecodeString(k.X); err == nil && k.Crv == "Ed25519" {
						valid = ed25519.Verify(key, []byte(content), raw)
					}
				}
			case "v1":
				mac := hmac.New(sha256.New, []byte(h.Get("X-A2a-Notification-Token")))
				mac.Write([]byte(content))
				valid = hmac.Equal(mac.Sum(nil), raw)
			}
			h.Set("Webhook-Signature", strings.Replace(h.Get("Webhook-Signature"), text, fmt.Sprintf("<valid: %v>", valid), 1))
		}
		h.Set("Webhook-Timestamp", "<seconds>")
		for name := range common {
			h.Set(name, common[name]) // of responses; a delivery is a request
		}
		h.Set("X-Request-Id", "(of responses)")
		s.say("%s", title)
		s.out.WriteString(s.normalize(s.head(h, d.line, d.body)))
		s.out.WriteByte('\n')
	}
}
