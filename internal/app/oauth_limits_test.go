package app

import (
	"net/http"
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
