package cursor

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := Of("things", rapid.String().Draw(t, "filter"))
		n, us := rapid.Int64().Draw(t, "number"), rapid.Int64Range(0, 1<<60).Draw(t, "time")
		text := rapid.StringN(0, -1, 300).Draw(t, "text")
		s := l.At().Int(n).Time(time.UnixMicro(us)).Text(text).String()
		r := l.Read(s)
		gotN, gotT, gotS := r.Int(), r.Time(), r.Text()
		if gotN != n || gotT.UnixMicro() != us || gotS != text || !r.Done() {
			t.Fatalf("%q: got %d, %s, %q, done %v; want %d, %d, %q", s, gotN, gotT, gotS, r.Done(), n, us, text)
		}
	})
}

func TestACursorOfAnotherListIsRefused(t *testing.T) {
	t.Parallel()
	s := Of("things", "open", "").At().Int(1).String()
	for name, other := range map[string]List{
		"another name":    Of("others", "open", ""),
		"another filter":  Of("things", "closed", ""),
		"another field":   Of("things", "", "open"),
		"a filter less":   Of("things", "open"),
		"shifted by some": Of("thingso", "pen", ""),
	} {
		if r := other.Read(s); r.Int() == 1 || r.Done() {
			t.Errorf("%s: Done = true, want false", name)
		}
	}
}

func TestBadCursorsAreRefused(t *testing.T) {
	t.Parallel()
	l := Of("things")
	good := l.At().Text("id").String()
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(b ...byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	for name, s := range map[string]string{
		"empty": "", "not base64": "!", "padded": good + "=", "short": encode(raw[:4]...),
		"another version": encode(append([]byte{version + 1}, raw[1:]...)...),
		"no value":        encode(raw[:header]...), "cut off": encode(raw[:len(raw)-1]...),
		"more than there should be": encode(append(raw, 0)...),
		"a length beyond the end": encode(append(raw[:header:header], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			1)...),
		"long": l.At().Text(strings.Repeat("x", maxLen)).String(),
	} {
		r := l.Read(s)
		if got := r.Text(); r.Done() {
			t.Errorf("%s: %q was read as %q, want a failure", name, s, got)
		}
	}
	r := l.Read(l.At().Time(time.UnixMicro(-1)).String())
	if r.Time(); r.Done() {
		t.Error("a time before 1970 was accepted")
	}
	if r = l.Read(good); r.Text() != "id" || !r.Done() {
		t.Error("a valid cursor was refused")
	}
}

func FuzzRead(f *testing.F) {
	l := Of("things")
	f.Add(l.At().Int(1).Text("id").String())
	f.Add("")
	f.Fuzz(func(_ *testing.T, s string) {
		r := l.Read(s)
		r.Int()
		r.Text()
		r.Done()
	})
}
