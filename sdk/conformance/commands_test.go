package conformance

import (
	"bytes"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/sdk/client"
)

// commands: without faults, each way to end a task does what it says.
func commands(t *testing.T, s *scene) {
	s.hire(t, terms{concurrency: 4})
	asked, listens := s.send(t, "ask How many?"), s.send(t, "listen")
	for command, want := range map[string]string{
		"echo hello": "hello", "sleep 50 rested": "rested", "grow 4 0": "1;2;3;4;", "status 0 a b": "done",
	} {
		s.completes(t, s.send(t, command), want)
	}
	for command, want := range map[string]struct {
		state client.TaskState
		says  string // part of the status message
	}{
		"fail no luck":     {client.TaskFailed, "no luck"},
		"reject not mine":  {client.TaskRejected, "not mine"},
		"crash":            {client.TaskFailed, ""},
		"unknown command!": {client.TaskFailed, ""},
	} {
		got := s.rests(t, s.send(t, command), want.state)
		if says := got.Status.Message.Text(); !strings.Contains(says, want.says) {
			t.Errorf("%q: the status message is %q, want %q", command, says, want.says)
		}
	}
	if got := s.rests(t, asked, client.TaskInputRequired).Status.Message.Text(); got != "How many?" {
		t.Errorf("the question is %q, want %q", got, "How many?")
	}
	s.say(t, asked, "seven")
	s.completes(t, asked, "seven")
	s.say(t, listens, "over and out")
	s.completes(t, listens, "over and out")
}

// files: a file arrives in both directions as it was sent, and a result that the server refuses as
// too large fails its task.
func files(t *testing.T, s *scene) {
	s.hire(t, terms{})
	want := client.File("größe ☃.bin", "application/x-test", pattern(300_000))
	got := s.rests(t, s.send(t, "file", want), client.TaskCompleted)
	checkFile(t, got, want)
	got = s.rests(t, s.send(t, "make 2000000 large.bin"), client.TaskCompleted)
	checkFile(t, got, client.File("large.bin", "application/octet-stream", pattern(2_000_000)))
	s.rests(t, s.send(t, "make 7000000 huge.bin"), client.TaskFailed)
	s.completes(t, s.send(t, "echo next"), "next")
}

// pattern returns the bytes of the command make.
func pattern(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i % 251)
	}
	return out
}

func checkFile(t *testing.T, got *client.Task, want client.Part) {
	t.Helper()
	if len(got.Artifacts) != 1 || got.Artifacts[0].ID != "file" || len(got.Artifacts[0].Parts) != 1 {
		t.Errorf("got %d artifacts, want one, with the id \"file\" and one part", len(got.Artifacts))
		return
	}
	part := got.Artifacts[0].Parts[0]
	if part.Kind != client.PartFile || part.Name != want.Name || part.MediaType != want.MediaType {
		t.Errorf("got a part of the kind %q: %q, %q; want the file %q, %q",
			part.Kind, part.Name, part.MediaType, want.Name, want.MediaType)
	}
	if !bytes.Equal(part.Bytes, want.Bytes) {
		t.Errorf("%s has other bytes than were sent: %d of %d", part.Name, len(part.Bytes), len(want.Bytes))
	}
}

// cancel: the handler of a task that its sender cancels is interrupted soon, and its slot is free.
func cancel(t *testing.T, s *scene) {
	d := s.hire(t, terms{})
	id := s.send(t, "sleep 60000 never")
	d.await(t, "start", 1)
	began := time.Now()
	if _, err := s.admin.Agent(s.agent).Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	e := d.await(t, "interrupted", 1)
	if took := time.Since(began); e.Reason != "canceled" || took > 20*time.Second {
		t.Errorf("interrupted with the reason %q after %v, want \"canceled\" soon", e.Reason, took)
	}
	s.rests(t, id, client.TaskCanceled)
	s.completes(t, s.send(t, "echo next"), "next")
}

// directMessage: a direct message whose first delivery is lost arrives once.
func directMessage(t *testing.T, s *scene) {
	if _, err := s.admin.Agent(s.agent).Message(t.Context(), client.NewMessage(client.Text("good news"))); err != nil {
		t.Fatal(err)
	}
	s.inject(first(claims, lose))
	d := s.hire(t, terms{})
	if e := d.await(t, "message", 1); e.Text != "good news" {
		t.Errorf("the direct message is %q, want %q", e.Text, "good news")
	}
	s.completes(t, s.send(t, "echo next"), "next")
	if n := d.count(t, "message", ""); n != 1 {
		t.Errorf("the driver got the message %d times, want once", n)
	}
}

// lostFriction: a friction report whose response is lost counts once, and the third one files a
// proposal.
func lostFriction(t *testing.T, s *scene) {
	lost := 0
	s.inject(func(x *transfer) *fault {
		if x.r.Method != http.MethodPost || !strings.HasSuffix(x.r.URL.Path, "/friction") || lost > 0 {
			return nil
		}
		lost++
		return lose
	})
	s.hire(t, terms{})
	for range 3 {
		s.completes(t, s.send(t, "friction "+s.agent), "counted")
	}
	got, err := s.admin.Friction.Get(t.Context(), s.agent)
	if err != nil {
		t.Fatal(err)
	}
	if got.Count != 3 || got.ProposalID == "" || s.faults(other) != 1 {
		t.Errorf("%d reports count and filed %q after %d lost responses, want 3 and a proposal after 1",
			got.Count, got.ProposalID, s.faults(other))
	}
}

// wrongKey: a worker whose key is refused ends with an error instead of trying forever.
func wrongKey(t *testing.T, s *scene) {
	d := s.hire(t, terms{key: "parley_" + strings.Repeat("x", 36)})
	err := d.exit(t)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the driver ended with %v, want exit code 1", err)
	}
	all := d.events(t)
	if last := all[len(all)-1]; last.Event != "refused" || last.Status != http.StatusUnauthorized {
		t.Errorf("the last event is %+v, want \"refused\" with the status 401", last)
	}
}

// executedOnce checks that one handler ran for a task, under one lease.
func (s *scene) executedOnce(t *testing.T, id string) {
	t.Helper()
	s.leases(t, id, task.LeaseDone)
	s.startedTimes(t, id, 1)
}

// startedTimes checks how many handlers ran for a task in all drivers.
func (s *scene) startedTimes(t *testing.T, id string, want int) {
	t.Helper()
	n := 0
	for _, d := range s.drivers {
		n += d.count(t, "start", s.records(t, s.agent)[id].UID)
	}
	if n != want {
		t.Errorf("%d handlers ran for %s, want %d", n, id, want)
	}
}
