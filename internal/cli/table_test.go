package cli

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func proposals(wide bool) *table {
	t := &table{
		head: []string{"ID", "CATEGORY", "STATUS", "SUBMITTED (UTC)", "TITLE"},
		ids:  "proposal",
		drop: []string{"SUBMITTED (UTC)", "CATEGORY"},
		wide: wide,
	}
	t.add("prop-01m7egvhyw8nnv8hcyse378vfw", "documentation", "open", "2026-11-15 02:33", "A title that needs more room than is left")
	t.add("prop-01m7egvhyw8nzz8hcyse378vfw", "process", "open", "2026-11-15 02:33", "Short")
	return t
}

// On a terminal a table fits: ids get short, then columns are left out, then the title is
// cut. Elsewhere, and with --wide, it is printed whole.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	whole := proposals(false)
	var full bytes.Buffer
	if err := whole.write(&full, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		width int
		wide  bool
		want  string
	}{
		{0, false, full.String()},
		{40, true, full.String()},
		{200, false, full.String()},
		{80, false, "" +
			"ID                  CATEGORY       STATUS  TITLE\n" +
			"prop-01m7egvhyw8nn  documentation  open    A title that needs more room than is…\n" +
			"prop-01m7egvhyw8nz  process        open    Short\n"},
		{50, false, "" +
			"ID                  STATUS  TITLE\n" +
			"prop-01m7egvhyw8nn  open    A title that needs mo…\n" +
			"prop-01m7egvhyw8nz  open    Short\n"},
		{30, false, "" +
			"ID                  STATUS  TITLE\n" +
			"prop-01m7egvhyw8nn  open    A title…\n" +
			"prop-01m7egvhyw8nz  open    Short\n"},
	} {
		tab := proposals(c.wide)
		cut := tab.fit(c.width)
		var out bytes.Buffer
		if err := tab.write(&out, false); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" || cut != (c.want != full.String()) {
			t.Errorf("%d columns, wide %t: cut %t (-want +got):\n%s", c.width, c.wide, cut, diff)
		}
	}
}

// A terminal shows Chinese characters and emoji in two columns, and combining marks in none.
func TestTablesAreAlignedInColumns(t *testing.T) {
	t.Parallel()
	tab := table{head: []string{"NAME", "TITLE"}}
	tab.add("部署", "重试部署步骤，最多三次")
	tab.add("e\u0301a", "🚀 launch it now")
	tab.fit(16)
	var out bytes.Buffer
	if err := tab.write(&out, false); err != nil {
		t.Fatal(err)
	}
	want := "NAME  TITLE\n部署  重试部署…\ne\u0301a    🚀 launch…\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Ids that people choose are never cut, whatever they look like: no command accepts a part
// of them.
func TestChosenIDsStayWhole(t *testing.T) {
	t.Parallel()
	const task, agent = "cli-01m7egvhyw8nnv8hcyse378vfw", "prop-01m7egvhyw8nnv8hcyse378vfw"
	tasks := table{
		head:  []string{"AGENT", "STATE", "SENDER", "ID"},
		drop:  []string{"SENDER"},
		whole: true,
	}
	tasks.add("scout", "working", "user:ada", task)
	agents := table{head: []string{"ID", "STATUS", "NAME"}, drop: []string{"NAME"}}
	agents.add(agent, "offline", "A name that needs more room than is left")
	for _, c := range []struct {
		table *table
		want  string
	}{
		{&tasks, "AGENT  STATE    ID\nscout  working  " + task + "\n"},
		{&agents, "ID                               STATUS\n" + agent + "  offline\n"},
	} {
		if !c.table.fit(30) {
			t.Errorf("%v: fit reports that nothing was left out", c.table.head)
		}
		var out bytes.Buffer
		if err := c.table.write(&out, false); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestTheFootMentionsWide(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{0: "2 of 2 proposals\n", 50: "2 of 2 proposals; --wide shows all of it\n"} {
		var out bytes.Buffer
		e := &env{stdout: &out, columns: width}
		if err := e.list(proposals(false), "proposal", "proposals", 2, 1, false); err != nil {
			t.Fatal(err)
		}
		got := strings.NewReplacer("\x1b[2m", "", "\x1b[0m", "").Replace(out.String())
		if !strings.HasSuffix(got, want) {
			t.Errorf("%d columns: %q", width, got)
		}
	}
}

// Short ids are unique, and name at least the millisecond.
func TestShortIDs(t *testing.T) {
	t.Parallel()
	got := shortIDs("prop-", []string{
		"prop-01m7egvhyw8nnv8hcyse378vfw", "prop-01m7egvhyw8nzz8hcyse378vfw", "prop-01m8000000aaaaaaaaaaaaaaaa",
		"key-01m8000000aaaaaaaaaaaaaaaa", "scout", "a-b",
	})
	want := []string{
		"prop-01m7egvhyw8nn", "prop-01m7egvhyw8nz", "prop-01m8000000", "key-01m8000000aaaaaaaaaaaaaaaa", "scout", "a-b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A prefix stands for the only id that begins with it, and never for one of several.
func TestIDsByPrefix(t *testing.T) {
	t.Parallel()
	newest := []string{"key-0300", "key-0222", "key-0211", "key-0100"}
	all := func(list []string, fails error) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for _, id := range list {
				if !yield(id, nil) {
					return
				}
			}
			if fails != nil {
				yield("", fails)
			}
		}
	}
	for prefix, want := range map[string]string{"key-03": "key-0300", "key-022": "key-0222", "key-9": "key-9"} {
		if got, err := onlyMatch("key", prefix, all(newest, nil)); got != want || err != nil {
			t.Errorf("%s: %q, %v", prefix, got, err)
		}
	}
	_, err := onlyMatch("key", "key-02", all(newest, nil))
	if err == nil || !strings.Contains(err.Error(), `key "key-02" is ambiguous; it may be`) ||
		!strings.Contains(err.Error(), "key-0211") || !strings.Contains(err.Error(), "key-0222") {
		t.Error(err)
	}
	broken := errors.New("broken")
	if _, err := onlyMatch("key", "key-03", all(newest, broken)); !errors.Is(err, broken) {
		t.Error("an incomplete list was taken for a whole one:", err)
	}
	long := slices.Repeat([]string{"key-9999"}, searchLimit+1)
	if _, err := onlyMatch("key", "key-03", all(long, nil)); err == nil || !strings.Contains(err.Error(), "give the whole id") {
		t.Error(err)
	}
	for id, want := range map[string]bool{
		"prop-01m7": true, "prop-01": false, "prop-01m7egvhyw8nnv8hcyse378vfw": false, "key-01m7": false, "01m7": false,
	} {
		if got := abbreviated(id, "prop-"); got != want {
			t.Errorf("abbreviated(%q) = %t", id, got)
		}
	}
}

func TestDurationsHaveDaysAndWeeks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"30d": 30 * day, "2w": 2 * week, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "90m": 90 * time.Minute,
		"300ms": 300 * time.Millisecond, "0": 0, "-1d": -day, ".5d": 12 * time.Hour, "1h.5d": 13 * time.Hour, "1.d": day,
	} {
		if got, err := parseDuration(in); got != want || err != nil {
			t.Errorf("parseDuration(%q) = %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "d", "30", "30 d", "soon", "1y", "1.5.5d", "0d0", ".d", "1d-1h"} {
		if got, err := parseDuration(in); err == nil {
			t.Errorf("parseDuration(%q) = %s; want an error", in, got)
		}
	}
	code, _, stderr := run(t, "key", "create", "--as", "user:x", "--scope", "s", "--expires", "soon", "--data", "x")
	if code != exitUsage || !strings.Contains(stderr, `"soon" is not a duration such as 30s, 12h, 30d or 2w`) {
		t.Error(code, stderr)
	}
}

// A key that never expires is one without --expires, not one that expires at once.
func TestExpiresIsPositive(t *testing.T) {
	t.Parallel()
	for _, d := range []string{"0", "0d", "-1h"} {
		code, _, stderr := run(t, "key", "create", "--as", "user:admin", "--scope", "svc:tasks:read", "--expires="+d, "--data", site.data)
		if code != exitUsage || !strings.Contains(stderr, "--expires must be more than 0") {
			t.Errorf("%s: code %d, %s", d, code, stderr)
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"pro"}, "proposal"},
		{[]string{"proposal", "re"}, "reject\nreopen\nresolve"},
		{[]string{"proposal", "list", "--sea"}, "--search"},
		{[]string{"key", "list", "--state", "re"}, "revoked"},
		{[]string{"member", "list", "--kind", "user", "--st"}, "--state"},
		{[]string{"--version", "pro"}, "proposal"},
		{[]string{"completion", ""}, "bash\nzsh\nfish"},
		{[]string{"help", "prop"}, "proposal"},
		{[]string{"proposal", "list", "--status", ""}, ""},
	} {
		code, stdout, stderr := run(t, append([]string{completeCommand}, c.words...)...)
		if got := strings.TrimSpace(stdout); code != exitOK || got != c.want {
			t.Errorf("%q: %d %q %s; want %q", c.words, code, got, stderr, c.want)
		}
	}
}
