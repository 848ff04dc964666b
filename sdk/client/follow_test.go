package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestFollowEventsOfAnyServer follows scripted streams.
func TestFollowEventsOfAnyServer(t *testing.T) {
	t.Parallel()
	stream := func(blocks ...string) answer {
		return answer{
			status: 200, header: map[string]string{"Content-Type": "text/event-stream"},
			body: strings.Join(blocks, "\n\n") + "\n\n",
		}
	}
	event := func(seq int) string { return fmt.Sprintf("id: %d\nevent: x.y\ndata: {\"seq\":%d}", seq, seq) }
	const (
		reset   = "id: 4\nevent: reset\ndata: {\"last_seq\":4}"
		revoked = "id: 7\nevent: error\ndata: {\"status\":401,\"code\":\"auth.invalid\",\"detail\":\"The key was revoked.\"}"
	)
	over := stream(revoked)
	for name, c := range map[string]struct {
		answers []answer
		tokens  bool
		events  string // and errors
		resumed string // the numbers that connections after the first continued with
	}{
		"events": {[]answer{stream(event(1), event(3)), over}, false, "1 3 401", "3"},
		// A position without an event counts.
		"position": {[]answer{stream(event(1), ":\nid: 6"), over}, false, "1 401", "6"},
		"comments": {[]answer{stream(":", event(1), ":", "retry: 10"), over}, false, "1 401", "1"},
		"repeated": {[]answer{stream(event(1), event(2)), stream(event(1), event(2), event(3)), over}, false, "1 2 3 401", "2 3"},
		"reset":    {[]answer{stream(event(9)), stream(reset, event(5)), over}, false, "9 reset 5 401", "9 5"},
		// An access token expires during a stream; the next connection has a new one.
		"tokens": {[]answer{stream(event(7), revoked), stream(event(8)), {status: 404, body: `{"detail":"No."}`}}, true, "7 8 404", "7 8"},
		// The unfinished event of a broken connection is dropped.
		"unfinished": {[]answer{
			{status: 200, header: map[string]string{"Content-Type": "text/event-stream"}, body: event(1) + "\n\nid: 2\nda"},
			over,
		}, false, "1 401", "1"},
	} {
		f := &fake{answers: c.answers}
		client := f.client(t, func(cfg *Config) {
			if c.tokens {
				cfg.Key, cfg.Tokens = "", &tokens{token: "a", renewed: "b"}
			}
		})
		var got, resumed []string
		after := int64(0)
		for e, err := range client.FollowEvents(t.Context(), EventsOptions{After: &after}) {
			var refused *Error
			switch {
			case errors.Is(err, ErrEventsReset):
				got = append(got, "reset")
			case errors.As(err, &refused):
				got = append(got, fmt.Sprint(refused.Status))
			default:
				got = append(got, fmt.Sprint(e.Seq))
			}
		}
		for i, r := range f.asked() {
			if r.URL.Path != "/api/v1/orgs/main/events" || r.URL.RawQuery != "after=0" ||
				!strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream") {
				t.Errorf("%s: request %s with %v", name, r.URL, r.Header)
			}
			if i > 0 {
				resumed = append(resumed, r.Header.Get("Last-Event-ID"))
			}
		}
		if strings.Join(got, " ") != c.events || strings.Join(resumed, " ") != c.resumed {
			t.Errorf("%s: got %v, resumed after %v; want %s and %s", name, got, resumed, c.events, c.resumed)
		}
	}
}
