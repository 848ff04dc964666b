package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// in returns a task in a state, with a lease if the state is working.
func in(s State) Task {
	t := Task{UID: "u", Org: "o", Agent: "a", State: s, Seq: 5, LastTurn: "before", Queued: s == Submitted}
	if s == Working {
		t.Lease = Lease{Token: "lease-u-1", Worker: "w", ExpiresAt: noon.Add(time.Minute)}
	}
	return t
}

// Every operation on every state: the new state, or the code of the refusal.
func TestEveryOperationOnEveryState(t *testing.T) {
	t.Parallel()
	text := func(s string) Turn {
		return Turn{Message: Message{Role: RoleUser, Parts: []Part{{Kind: TextPart, Text: s}}}}
	}
	report := func(s State) func(Task) (Change, error) {
		return func(t Task) (Change, error) {
			return DecideReport(t, "lease-u-1", Report{State: s}, DefaultLimits, noon, noon)
		}
	}
	const (
		same  = "" // accepted, and nothing changed
		stale = CodeStaleLease
		over  = CodeTerminal
		notCA = CodeNotCancelable
	)
	ended := func(code string) map[State]string {
		return map[State]string{Completed: code, Failed: code, Canceled: code, Rejected: code}
	}
	// held is for operations that need the live lease, which only a working task has.
	held := func(working string) map[State]string {
		return with(ended(stale), Submitted, stale, Working, working, InputRequired, stale, AuthRequired, stale)
	}
	for _, c := range []struct {
		name string
		do   func(Task) (Change, error)
		want map[State]string // a state, or a code
	}{
		{
			"claim", func(t Task) (Change, error) {
				return DecideClaim(t, Lease{Token: "lease-u-2", ExpiresAt: noon.Add(time.Minute)}, noon)
			},
			with(ended(same), Submitted, "working", Working, same, InputRequired, same, AuthRequired, same),
		},
		{"report working", report(Working), held("working")},
		{"report completed", report(Completed), held("completed")},
		{"report failed", report(Failed), held("failed")},
		{"report rejected", report(Rejected), held("rejected")},
		{"report input-required", report(InputRequired), held("input-required")},
		{"report auth-required", report(AuthRequired), held("auth-required")},
		{"report canceled", report(Canceled), held("request.invalid")},
		{"report submitted", report(Submitted), held("request.invalid")},
		{
			"cancel", func(t Task) (Change, error) { return DecideCancel(t, noon) },
			with(ended(notCA), Submitted, "canceled", Working, "canceled", InputRequired, "canceled", AuthRequired, "canceled"),
		},
		{
			"a further turn", func(t Task) (Change, error) { return DecideTurn(t, text("more"), DefaultLimits, noon) },
			with(ended(over), Submitted, "submitted", Working, "working", InputRequired, "working", AuthRequired, "working"),
		},
		{
			"hand back", func(t Task) (Change, error) { return DecideReturn(t, "lease-u-1", noon, noon) },
			held("working"),
		},
		{
			"expire", func(t Task) (Change, error) { return DecideExpire(t, noon, noon.Add(time.Hour)) },
			with(ended(same), Submitted, same, Working, "working", InputRequired, same, AuthRequired, same),
		},
	} {
		for _, s := range States {
			before := in(s)
			got, err := c.do(before)
			want := c.want[s]
			switch {
			case err != nil:
				if code := errs.As(err).Code; code != want {
					t.Errorf("%s on %s: %s; want %q", c.name, s, code, want)
				}
			case want == same:
				if len(got.Events) != 0 || got.Task.State != s {
					t.Errorf("%s on %s changed it to %s", c.name, s, got.Task.State)
				}
			case string(got.Task.State) != want:
				t.Errorf("%s on %s led to %s; want %q", c.name, s, got.Task.State, want)
			case got.Task.State != s && !slices.Contains(s.Next(), got.Task.State):
				t.Errorf("%s on %s led to %s, which is not in the table", c.name, s, got.Task.State)
			default:
				checkChange(t, fmt.Sprint(c.name, " on ", s), before, got)
			}
		}
	}
}

func with(m map[State]string, more ...any) map[State]string {
	for i := 0; i < len(more); i += 2 {
		m[more[i].(State)] = more[i+1].(string)
	}
	return m
}

// checkChange tests the invariants of every change: the numbers of the events continue those of
// the row, the row matches the events, and only a working task has a lease.
func checkChange(t *testing.T, name string, before Task, c Change) {
	t.Helper()
	for i, e := range c.Events {
		if e.Seq != before.Seq+int64(i)+1 {
			t.Errorf("%s: event %d has number %d", name, i, e.Seq)
		}
	}
	if n := len(c.Events); n == 0 || c.Task.Seq != c.Events[n-1].Seq {
		t.Errorf("%s: the row is at %d after %d events", name, c.Task.Seq, n)
	}
	if c.Task.Lease.Live() && (c.Task.State != Working || c.Task.Queued) {
		t.Errorf("%s: a lease on a task that is %s (queued %v)", name, c.Task.State, c.Task.Queued)
	}
	if c.Task.State.Terminal() && c.Task.Queued {
		t.Errorf("%s: an ended task waits in the queue", name)
	}
}

func TestTerminalStatesHaveNoWayOut(t *testing.T) {
	t.Parallel()
	for s, want := range map[State]bool{
		Completed: true, Failed: true, Canceled: true, Rejected: true,
		Submitted: false, Working: false, InputRequired: false, AuthRequired: false,
	} {
		if s.Terminal() != want {
			t.Errorf("%s is terminal: %v", s, s.Terminal())
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	limits := Limits{Size: 100, Events: 8}
	big := Message{Role: RoleUser, Parts: []Part{{Kind: TextPart, Text: string(make([]byte, 200))}}}
	if _, err := DecideNew(Task{}, Turn{Message: big}, nil, limits, noon); errs.As(err).Code != CodeTooLarge {
		t.Errorf("a large message: %v", err)
	}
	if _, err := DecideTurn(in(Working), Turn{Message: big}, limits, noon); errs.As(err).Code != CodeTooLarge {
		t.Errorf("a large turn: %v", err)
	}
	u := ArtifactUpdate{Artifact: Artifact{ID: "a", Parts: []Part{{Kind: TextPart, Text: "x"}}}, Append: true}
	large := Report{Artifacts: []ArtifactUpdate{u, u, u, u}}
	if _, err := DecideReport(in(Working), "lease-u-1", large, limits, noon, noon); errs.As(err).Code != CodeTooLarge {
		t.Errorf("too many events: %v", err)
	}
}

// A task that has reached its limits can still be kept and be ended, but not grow.
func TestATaskAtItsLimitsEnds(t *testing.T) {
	t.Parallel()
	at := in(Working)
	limits := Limits{Size: 100, Events: at.Seq}
	long := Says(strings.Repeat("x", maxLastMessage))
	u := ArtifactUpdate{Artifact: Artifact{ID: "a", Parts: []Part{{Kind: TextPart, Text: "x"}}}}
	for name, c := range map[string]struct {
		report Report
		ends   State // empty: refused
	}{
		"kept":                 {Report{Extend: time.Minute}, Working},
		"failed":               {Report{State: Failed, Message: Says("too large")}, Failed},
		"completed":            {Report{State: Completed}, Completed},
		"more work":            {Report{Message: Says("more")}, ""},
		"a question":           {Report{State: InputRequired, Message: Says("which?")}, ""},
		"failed, with a novel": {Report{State: Failed, Message: long}, ""},
		"completed, with work": {Report{State: Completed, Artifacts: []ArtifactUpdate{u}}, ""},
	} {
		got, err := DecideReport(at, "lease-u-1", c.report, limits, noon, noon)
		if c.ends == "" && errs.As(err).Code != CodeTooLarge {
			t.Errorf("%s: %v, want %s", name, err, CodeTooLarge)
		}
		if c.ends != "" && (err != nil || got.Task.State != c.ends) {
			t.Errorf("%s: %s, %v, want %s", name, got.Task.State, err, c.ends)
		}
	}
	at.Policy.Retry.Failed, at.Policy.Retry.Attempts = true, 5
	got, err := DecideReport(at, "lease-u-1", Report{State: Failed}, limits, noon, noon)
	if err != nil || got.Task.State != Failed {
		t.Errorf("with retries: %s, %v, want that it fails: another attempt has no room", got.Task.State, err)
	}
}

// A worker may confirm more than once that its task was canceled.
func TestAWorkerConfirmsThatItsTaskWasCanceled(t *testing.T) {
	t.Parallel()
	canceled, err := DecideCancel(in(Working), noon)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := DecideReport(canceled.Task, "lease-u-1", Report{State: Canceled}, DefaultLimits, noon, noon)
		if err != nil || len(c.Events) != 0 || c.Task.State != Canceled {
			t.Fatalf("confirming: %d events, %s, %v", len(c.Events), c.Task.State, err)
		}
	}
	_, err = DecideReport(canceled.Task, "lease-u-2", Report{State: Canceled}, DefaultLimits, noon, noon)
	if errs.As(err).Code != CodeStaleLease {
		t.Errorf("confirming under another lease: %v", err)
	}
}

// Artifacts in a report that ends the task are complete, unless the worker says otherwise.
func TestArtifactsOfTheLastReportAreComplete(t *testing.T) {
	t.Parallel()
	piece := func(id string, change func(*ArtifactUpdate)) ArtifactUpdate {
		u := ArtifactUpdate{Artifact: Artifact{ID: id, Parts: []Part{{Kind: TextPart, Text: "x"}}}}
		if change != nil {
			change(&u)
		}
		return u
	}
	more := func(u *ArtifactUpdate) { u.More = true }
	last := func(u *ArtifactUpdate) { u.LastChunk = true }
	appended := func(u *ArtifactUpdate) { u.Append = true }
	for _, c := range []struct {
		name  string
		state State
		add   []ArtifactUpdate
		want  []bool
	}{
		{"completed", Completed, []ArtifactUpdate{piece("a", nil), piece("b", nil)}, []bool{true, true}},
		{"failed", Failed, []ArtifactUpdate{piece("a", nil)}, []bool{true}},
		{"the worker says that more follows", Completed, []ArtifactUpdate{piece("a", more)}, []bool{false}},
		{"two pieces of one", Completed, []ArtifactUpdate{piece("a", nil), piece("a", appended)}, []bool{false, true}},
		{"still working", Working, []ArtifactUpdate{piece("a", nil), piece("b", last)}, []bool{false, true}},
		{"no status", "", []ArtifactUpdate{piece("a", nil)}, []bool{false}},
		{"input-required", InputRequired, []ArtifactUpdate{piece("a", nil)}, []bool{false}},
	} {
		change, err := DecideReport(in(Working), "lease-u-1", Report{State: c.state, Artifacts: c.add}, DefaultLimits, noon, noon)
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, e := range change.Events {
			if e.Kind == ArtifactEvent {
				got = append(got, e.LastChunk)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: last chunk %v; want %v", c.name, got, c.want)
		}
	}
}
