package httpx

import (
	"net/http/httptest"
	"testing"
	"time"
)

// deadlines is a writer that records its deadline.
type deadlines struct {
	*httptest.ResponseRecorder
	deadline time.Time
	stalled  bool // a flush fails
}

func (c *deadlines) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *deadlines) FlushError() error {
	if c.stalled {
		return errBadHeader // any error
	}
	return nil
}

func TestPatientHasADeadlineOnlyWhileItSends(t *testing.T) {
	t.Parallel()
	w := &deadlines{ResponseRecorder: httptest.NewRecorder(), deadline: time.Now()}
	p := NewPatient(w)
	if !w.deadline.IsZero() {
		t.Fatal("the server's own deadline is still set")
	}
	for range 2 {
		_, _ = p.Write([]byte("x"))
		if left := time.Until(w.deadline); left < sseDeadline/2 || left > sseDeadline {
			t.Fatalf("deadline in %s, want about %s", left, sseDeadline)
		}
		p.Flush()
		if !w.deadline.IsZero() {
			t.Fatal("a deadline is set while there is nothing to send")
		}
	}
	w.stalled = true
	p.Flush()
	if w.deadline.IsZero() {
		t.Error("no deadline for a reader that stalls")
	}
	if w.Body.String() != "xx" {
		t.Errorf("body = %q, want xx", w.Body)
	}
}
