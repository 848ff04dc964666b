package relay

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/budget"
)

// reading is a stream that is read with memory of a pool.
func reading(t *testing.T, in io.Reader) (*events, *budget.Pool, *intake) {
	t.Helper()
	pool := budget.NewPool(budget.Limits{Memory: 128 << 20, Response: maxBody})
	ctx, got := withIntake(t.Context())
	c := &transport{memory: pool}
	return newEvents(io.NopCloser(in), false, c.reservation(ctx)), pool, got
}

// Events without data, which the client skips, hold no memory.
func TestEventsWithoutDataHoldNothing(t *testing.T) {
	t.Parallel()
	junk := "id: " + strings.Repeat("x", 2*unreserved) + "\n\n"
	e, pool, got := reading(t, strings.NewReader("data: 1\nid: 7\n\n"+strings.Repeat(junk, 20)+": alive\n\ndata:\n\ndata: 2\n\n"))
	b, err := io.ReadAll(e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("data: 1\n\ndata: 2\n\n", string(b)); diff != "" {
		t.Error("what is passed on (-want +got)\n", diff)
	}
	if used := pool.Used(); used != 0 {
		t.Errorf("%d bytes are held, want 0", used)
	}
	if n := got.take().bytes; n != int64(len("data: 1\n")+len("data: 2\n")) {
		t.Errorf("%d bytes were counted, want those of the data", n)
	}
}

// The memory of an event is passed on with it, and counts its values.
func TestSmallValuesCount(t *testing.T) {
	t.Parallel()
	const values = 50_000
	list := `[` + strings.Repeat(`{},`, values) + `"a,{[\"b"]`
	e, pool, got := reading(t, strings.NewReader("data: "+list+"\n\n"))
	if _, err := io.ReadAll(e); err != nil {
		t.Fatal(err)
	}
	if used, least := pool.Used(), int64(len(list)+2*values*valueSize); used < least {
		t.Errorf("%d bytes are held, want at least %d", used, least)
	}
	got.take().release()
	if used := pool.Used(); used != 0 {
		t.Errorf("%d bytes are held at the end, want 0", used)
	}

	var s scale
	for _, piece := range []string{`["a,`, `\`, `"b{[",`, `{}]`} { // cut within a string and an escape
		s.add([]byte(piece))
	}
	if s.values != 3 {
		t.Errorf("%d values, want 3", s.values)
	}
}

// A response that would take too much memory is refused, and the error stays: a decoder would ignore
// it after a complete value.
func TestExpandingResponseIsRefused(t *testing.T) {
	t.Parallel()
	text := `[` + strings.Repeat(`{},`, 1_000_000) + `1]`
	ctx, got := withIntake(t.Context())
	c := &transport{memory: budget.NewPool(budget.Limits{Memory: 128 << 20, Response: maxBody})}
	b := newBounded(io.NopCloser(strings.NewReader(text)), c.reservation(ctx))
	n, err := io.Copy(io.Discard, b)
	if !errors.Is(err, errTooLarge) {
		t.Errorf("got %v after %d bytes, want %v", err, n, errTooLarge)
	}
	if n, err := b.Read(make([]byte, 8)); n != 0 || !errors.Is(err, errTooLarge) {
		t.Errorf("then got %d, %v; want the error again", n, err)
	}
	_ = b.Close()
	got.take().release()
	if used := c.memory.Used(); used != 0 {
		t.Errorf("%d bytes are held at the end, want 0", used)
	}
}

// A remote that stalls in the middle of a large event holds its memory for a limited time.
func TestStalledEventEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		e, pool, _ := reading(t, nil)
		*e = *newEvents(in, false, e.memory)
		text := "data: " + strings.Repeat("x", 4*unreserved)
		go func() { _, _ = out.Write([]byte(text)) }()
		start, want := time.Now(), holdMost+4*unreserved*time.Second/slowRate // it is read in pieces of 4 KiB
		_, err := io.ReadAll(e)
		if !errors.Is(err, errSilent) || time.Since(start) != want {
			t.Errorf("got %v after %v, want %v after %v", err, time.Since(start), errSilent, want)
		}
		_ = e.Close()
		if used := pool.Used(); used != 0 {
			t.Errorf("%d bytes are held, want 0", used)
		}
	})
}

// A large response that comes slowly, but steadily, is read. The remote has done its work, and might do
// it again.
func TestSlowResponseIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		c := &transport{memory: budget.NewPool(budget.Limits{Memory: 128 << 20, Response: maxBody})}
		b := newBounded(in, c.reservation(t.Context()))
		const size, each = 12 << 20, 96 << 10 // in two minutes
		go func() {
			for range size / each {
				_, _ = out.Write(bytes.Repeat([]byte{'x'}, each))
				time.Sleep(time.Second)
			}
			_ = out.Close()
		}()
		if n, err := io.Copy(io.Discard, b); n != size || err != nil {
			t.Errorf("read %d bytes and %v, want %d", n, err, size)
		}
		_ = b.Close() // which also ends the writer
	})
}

// A credential is hidden before a text is cut, in every form.
func TestCredentialIsHiddenFromErrors(t *testing.T) {
	t.Parallel()
	const secret = `SECRET/0123456789"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ`
	a := newAuthenticator(&Credential{Type: OAuth, ClientID: "me", ClientSecret: secret}, nil, nil)
	forms := []string{
		secret, `SECRET/0123456789\"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ`,
		"SECRET%2F0123456789%22abcdefghijklmnopqrstuvwxyz+ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"SECRET%2F0123456789%22abcdefghijklmnopqrstuvwxyz%20ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"bWU6U0VDUkVULzAxMjM0NTY3ODkiYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXogQUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=",
	}
	for _, form := range forms {
		got := a.said(strings.Repeat("y", maxSaid-20) + " " + form)
		if strings.Contains(got, "SECRET") || strings.Contains(got, "bWU6") {
			t.Errorf("the credential shows: …%s", got[maxSaid-30:])
		}
	}
	status := &statusError{code: 302, target: "https://agents.example/?key=" + secret}
	if got := explain(nil, a, status); strings.Contains(got, "SECRET") {
		t.Errorf("the credential shows: %s", got)
	}
	if got := (*authenticator)(nil).said("plain"); got != "plain" {
		t.Errorf("said = %q, want plain", got)
	}
}

// A remote that echoes a short credential very often makes no large text, and costs little time.
func TestLongErrorsAreCutWhileTheyAreHidden(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxBody)
	if got := (&authenticator{c: &Credential{Token: "x"}}).said(strings.Repeat("𝄞", 2*maxSaid)); utf8.RuneCountInString(got) != maxSaid+1 {
		t.Errorf("%d characters are shown, want %d and the sign that more follow", utf8.RuneCountInString(got), maxSaid)
	}
	for _, token := range []string{"x", strings.Repeat("x", 8<<10) + "y"} {
		a := newAuthenticator(&Credential{Type: Bearer, Token: token}, nil, nil)
		if got := a.hide(long); len(got) > maxSaid*utf8.UTFMax+len("[credential]") {
			t.Errorf("%d bytes remain, want few", len(got))
		}
		if got := utf8.RuneCountInString(a.said(long)); got != maxSaid+1 {
			t.Errorf("%d characters are shown, want %d and the sign that more follow", got, maxSaid)
		}
	}
}

// An announced size is trusted only in proportion to what has come, and a response whose size is known
// takes little more than it needs.
func TestAnnouncedSizeHoldsLittle(t *testing.T) {
	t.Parallel()
	held := func(announced, sent int64) int64 {
		pool := budget.NewPool(budget.Limits{Memory: 128 << 20, Response: maxBody})
		ctx, got := withIntake(t.Context())
		c := &transport{memory: pool}
		b := newBounded(io.NopCloser(strings.NewReader(strings.Repeat("x", int(sent)))), c.reservation(ctx))
		b.memory.expected = announced
		if _, err := io.Copy(io.Discard, b); err != nil {
			t.Fatal(err)
		}
		used := pool.Used()
		_ = b.Close()
		got.take().release()
		return used
	}
	if used := held(maxBody, unreserved+1); used > 1<<20 {
		t.Errorf("a lie holds %d bytes after %d have come", used, unreserved+1)
	}
	const size = 11 << 20
	if used := held(size, size); used > size+size/8 {
		t.Errorf("%d bytes are held for a response of %d", used, size)
	}
}

// The last event of a stream holds its memory until it is stored, even if no empty line ends it.
func TestLastEventWithoutEndHoldsMemory(t *testing.T) {
	t.Parallel()
	e, pool, got := reading(t, strings.NewReader("data: "+strings.Repeat("x", 4*unreserved)))
	if _, err := io.ReadAll(e); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	if used := pool.Used(); used < 4*unreserved {
		t.Errorf("%d bytes are held, want those of the event", used)
	}
	got.take().release()
	if used := pool.Used(); used != 0 {
		t.Errorf("%d bytes are held at the end, want 0", used)
	}
}
