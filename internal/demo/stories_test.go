package demo

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

func TestStepsAreWrittenInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 17, 8, 0, 0, 0, time.UTC)
	clock := NewClock(now)
	line := newTimeline(clock, now)
	var got []string
	add := func(age time.Duration) {
		at := line.ago(age)
		line.at(at, "step", func(context.Context) error {
			got = append(got, clock.Now().Format(time.TimeOnly))
			return nil
		})
	}
	add(time.Hour)
	add(3 * time.Hour)
	add(2 * time.Hour)
	if err := line.play(t.Context()); err != nil || strings.Join(got, " ") != "05:00:00 06:00:00 07:00:00" {
		t.Errorf("steps at %v, %v; want the oldest first, each at its time", got, err)
	}
	if clock.Now() != now {
		t.Errorf("the clock stands at %s in the end, want now", clock.Now())
	}
	add(-time.Second)
	if err := line.play(t.Context()); err == nil || !strings.Contains(err.Error(), "after the start") {
		t.Errorf("a step of the future: %v, want an error", err)
	}
}

func TestMarksOfVotes(t *testing.T) {
	t.Parallel()
	for mark, want := range map[string]struct {
		voter  string
		choice proposal.Choice
	}{
		"jonas+":           {"user:jonas", proposal.For},
		"aiko-":            {"user:aiko", proposal.Against},
		"@docs-writer+":    {"agent:docs-writer", proposal.For},
		"@support-triage-": {"agent:support-triage", proposal.Against},
	} {
		if voter, choice := voteOf(mark); voter != want.voter || choice != want.choice {
			t.Errorf("voteOf(%q) = %s %s, want %v", mark, voter, choice, want)
		}
	}
}

// A comment of someone who does not vote would be lost silently.
func TestCommentsBelongToVoters(t *testing.T) {
	t.Parallel()
	for _, i := range ideas {
		for who := range i.says {
			if !strings.Contains(" "+i.votes, " "+who+"+") && !strings.Contains(" "+i.votes, " "+who+"-") {
				t.Errorf("%q has a comment of %s, who does not vote", i.title, who)
			}
		}
	}
}

func TestJobsAreRecognizedByTheirText(t *testing.T) {
	t.Parallel()
	for _, j := range jobs {
		if got := jobOf(j.agent, j.about(5)); got.text != j.text {
			t.Errorf("jobOf(%q) = %q", j.about(5), got.text)
		}
		if strings.Contains(j.about(5), "#") || j.number == 0 && strings.Contains(j.text, "#") {
			t.Errorf("%q has a number that is not filled in", j.text)
		}
		list := append(j.begin(), j.finish()...)
		if end := list[len(list)-1].State; !end.Terminal() {
			t.Errorf("%q ends with %s", j.text, end)
		}
		if first := j.begin(); j.question != "" && first[len(first)-1].State != task.InputRequired {
			t.Errorf("%q does not ask its question", j.text)
		}
	}
	other := jobOf("docs-writer", strings.Repeat("long ", 1000))
	text := other.finish()[1].Artifacts[0].Artifact.Parts[0].Text
	if len(text) > 2*maxQuote || !strings.Contains(text, "> long") {
		t.Errorf("an unknown request is answered with %q", text)
	}
}

// Two tasks of one sender under one id would be one task.
func TestIDsOfTasksAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for n := range maxActs {
		for _, j := range jobs {
			id := j.agent + "/" + j.id(n)
			if other := seen[id]; other != "" {
				t.Fatalf("%s is the id of %q and of %q", id, other, j.about(n))
			}
			seen[id] = j.about(n)
		}
	}
	if n := len(errands()); n > afterHistory {
		t.Errorf("the past has %d tasks, want at most %d: the ids of the present begin there", n, afterHistory)
	}
	if j := jobs[0]; j.id(0) != "triage-ticket-48213" {
		t.Errorf("id = %q, want one that people can read", j.id(0))
	}
}

// A demo that nobody stops must not fill the disk.
func TestAForgottenDemoSlowsDownAndEnds(t *testing.T) {
	t.Parallel()
	acts := func(d time.Duration) (n int) {
		for running := time.Duration(0); running < d; n++ {
			running += pause(running)
		}
		return n
	}
	if n := acts(time.Hour); n < 300 {
		t.Errorf("%d acts in the first hour, want at least 300", n)
	}
	if n := acts(7 * day); n > 4000 || n > maxActs {
		t.Errorf("%d acts in a week, want at most 4000", n)
	}
}

func TestReceiverAcceptsRefusesAndIsGone(t *testing.T) {
	t.Parallel()
	r, err := NewReceiver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go r.Serve()
	post := func(path string) int {
		res, err := http.Post("http://"+r.Address()+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	count := map[int]int{}
	for range 2 * busyEvery {
		count[post(hookPath)]++
	}
	if count[http.StatusOK] != 2*busyEvery-2 || count[http.StatusServiceUnavailable] != 2 {
		t.Errorf("responses = %v, want two of them 503", count)
	}
	if got := post(gonePath); got != http.StatusGone {
		t.Errorf("the receiver that is gone responds with %d", got)
	}
}
