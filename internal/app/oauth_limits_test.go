package app

import (
	"net/http"
	"net/url"
	"testing"

	"golang.org/x/oauth2"
)

// TestQuestionsThatNobodyAnswersAreBounded opens authorization requests and leaves
// them, until no more are taken.
func TestQuestionsThatNobodyAnswersAreBounded(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	client, _ := registered(t, s, "")
	verifier := oauth2.GenerateVerifier()
	client.Scopes = []string{"svc:tasks:read"}
	addr := client.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier))
	var last string
	for i := range 150 {
		res, body := b.do("GET", addr, nil)
		switch {
		case res.StatusCode == http.StatusOK && answerPath.MatchString(body):
			last = answerPath.FindStringSubmatch(body)[1]
			continue
		case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") == "60" && i == 100:
		default:
			t.Fatalf("request %d: %s %s", i+1, res.Status, body)
		}
		if last == "" {
			t.Fatal("no question was put")
		}
		return
	}
	t.Error("150 questions are open, and none was refused")
}

// TestNamingAClientUsesUpNothingOfIts sends requests in the name of a client, without
// its secret, that fail before the secret is looked at.
func TestNamingAClientUsesUpNothingOfIts(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := newBrowser(t, s)
	client, _ := registered(t, s, `,"token_endpoint_auth_method":"client_secret_post"`)
	for i := range 110 {
		res, body := b.do("POST", "/oauth/token", url.Values{
			"grant_type": {"x"}, "client_id": {client.ClientID},
			"client_secret": {"junk"},
		})
		if res.StatusCode != http.StatusBadRequest {
			t.Fatalf("junk %d: %s %s", i+1, res.Status, body)
		}
	}
	own := url.Values{"client_id": {client.ClientID}, "client_secret": {client.ClientSecret}, "token": {"none"}}
	if res, body := b.do("POST", "/oauth/introspect", own); res.StatusCode != http.StatusOK {
		t.Errorf("the client itself: %s %s", res.Status, body)
	}
}
