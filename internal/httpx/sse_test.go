package httpx

import (
	"net/http/httptest"
	"testing"
	"time"
)

// slow is a connection with deadlines.
type slow struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (s *slow) SetWriteDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	w := &slow{ResponseRecorder: httptest.NewRecorder()}
	s := NewSSE(w)
	for _, err := range []error{
		s.Event(7, []byte(`{"a":1}`)), s.Flush(), s.Flush(), s.Comment(), s.Retry(1500 * time.Millisecond),
		s.Named(8, "proposal.voted", []byte(`{"b":`), []byte(`2}`)), s.Position(9),
		s.Unnumbered("signed-out", []byte("{}")), s.Flush(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const want = "id: 7\ndata: {\"a\":1}\n\n:\n\nretry: 1500\n\n" +
		"id: 8\nevent: proposal.voted\ndata: {\"b\":2}\n\n:\nid: 9\n\nevent: signed-out\ndata: {}\n\n"
	if got := w.Body.String(); got != want || !w.Flushed {
		t.Errorf("got %q, want %q and a flush", got, want)
	}
	// A stream outlives the server's write timeout, but a stalled reader does not outlive its own
	// deadline. What is sent together has one deadline.
	if len(w.deadlines) != 2 {
		t.Fatalf("deadlines = %d, want 2", len(w.deadlines))
	}
	for _, d := range w.deadlines {
		if left := time.Until(d); left < 20*time.Second || left > sseDeadline {
			t.Errorf("deadline in %s, want 20s to %s", left, sseDeadline)
		}
	}
}

func TestAllowWait(t *testing.T) {
	t.Parallel()
	w := &slow{ResponseRecorder: httptest.NewRecorder()}
	AllowWait(w, 5*time.Second)
	if len(w.deadlines) != 0 {
		t.Error("a short wait set a deadline, want none")
	}
	AllowWait(w, time.Minute)
	if len(w.deadlines) != 1 || time.Until(w.deadlines[0]) < time.Minute {
		t.Errorf("deadlines = %v, want one in more than a minute", w.deadlines)
	}
}
