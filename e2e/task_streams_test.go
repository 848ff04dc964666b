package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestTaskStreams opens many streams on one server and checks the memory of an idle one, that an
// event reaches all of them, and that stalled readers delay no other.
func TestTaskStreams(t *testing.T) {
	n := fromEnv(t, "PARLEY_STREAMS", 500)
	const stalled, beside = 100, 10
	needFiles(t, uint64(n+stalled+beside+200))
	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--rate-limit", "0",
		"--max-streams", strconv.Itoa(2*(n+stalled+beside)), "--max-streams-per-principal",
		strconv.Itoa(2*(n+stalled+beside)))
	o := newTaskOrg(t, s, "streams")
	for _, id := range []string{"idle", "loud"} {
		must(o.peer().send(t.Context(), o.agent, id, "go"))(t)
	}
	leases := map[string]string{"idle": o.hand().take(t, 3600).Lease, "loud": o.hand().take(t, 3600).Lease}

	// The first few make the server allocate its fixed costs.
	warm := openStreams(t, o, "idle", 50)
	before := resident(t, s)
	start := time.Now()
	idle := append(warm, openStreams(t, o, "idle", n-50)...)
	opened := time.Since(start)
	after, each := 0, 0.0
	for deadline := time.Now().Add(20 * time.Second); ; { // the server trims the stacks in the background
		after = resident(t, s)
		if each = float64(after-before) / float64(n-50); each <= 16 || n < 5000 || time.Now().After(deadline) {
			break
		}
	}
	t.Logf("%d idle streams, opened in %v: %.1f KiB each (%.1f MiB before, %.1f MiB after)", n,
		opened.Round(time.Millisecond), each, float64(before)/1024, float64(after)/1024)
	if n >= 5000 && each > 16 { // a few hundred measure the garbage collector instead
		t.Errorf("an idle stream costs %.1f KiB; want at most 16", each)
	}

	start = time.Now()
	o.tell(t, leases["idle"], object{"artifacts": []object{artifact("news", "to all")}})
	awaitAll(t, idle, "news")
	t.Logf("one event reached all %d in %v", n, time.Since(start).Round(time.Millisecond))

	// The stalled ones never read; megabytes fill the kernel's buffers.
	for range stalled {
		o.openRaw(t, "loud", 4096)
	}
	live := openStreams(t, o, "loud", beside)
	start = time.Now()
	for i := range 16 {
		o.tell(t, leases["loud"], object{"artifacts": []object{artifact("mass", strings.Repeat("x", 512<<10))}})
		if i == 0 {
			awaitAll(t, live, "mass")
		}
	}
	o.tell(t, leases["loud"], object{"status": "completed"})
	o.tell(t, leases["idle"], object{"status": "completed"})
	awaitAll(t, idle, `"final":true`)
	toIdle := time.Since(start)
	awaitAll(t, live, `"final":true`)
	took := time.Since(start)
	t.Logf("beside %d stalled readers of 8 MiB, %d others of the same task had all of it after %v, "+
		"and %d of another task their end after %v", stalled, beside, took.Round(time.Millisecond), n,
		toIdle.Round(time.Millisecond))
	// The server drops a stalled reader after 30 s. If another reader had waited for one, it would
	// be gone by now. The metrics request is one more.
	if n := inFlight(t, s) - 1; n < stalled {
		t.Errorf("%d stalled readers are left, want %d: they do not stall, or others waited for them", n, stalled)
	}
}

// needFiles raises the limit of open files of this process; the server raises its own.
func needFiles(t *testing.T, n uint64) {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	if l.Max < n { // root may
		l.Max = n
	}
	if l.Cur < n {
		l.Cur = l.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
			t.Fatalf("ulimit -n allows %d open files, want %d: %v", l.Max, n, err)
		}
	}
}

// resident returns the memory of the server's process in KiB, once two readings in a row agree.
func resident(t *testing.T, s *server) int {
	t.Helper()
	read := func() int {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
		if err != nil {
			t.Skipf("memory is read from /proc, which is not here: %v", err)
		}
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		kib, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return kib
	}
	last := read()
	for range 20 {
		time.Sleep(250 * time.Millisecond)
		now := read()
		if max(now-last, last-now) < 256 {
			return now
		}
		last = now
	}
	return last
}

// inFlight returns the number of requests in flight.
func inFlight(t *testing.T, s *server) int {
	t.Helper()
	res, err := taskClient.Get(s.base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\nparley_http_requests_in_flight ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("the metric of requests in flight: %v", err)
	}
	return n
}

// rawStream is a stream reduced to its connection, so that thousands fit into the
// test.
type rawStream struct {
	net.Conn
	r *bufio.Reader
}

// openRaw opens a task's stream and reads nothing. buffer, if not zero, limits the kernel's buffer
// for a reader that does not read.
func (o *taskOrg) openRaw(t *testing.T, id string, buffer int) *rawStream {
	t.Helper()
	body, err := json.Marshal(envelope("tasks/resubscribe", object{"id": id}))
	if err != nil {
		t.Fatal(err)
	}
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if buffer == 0 {
			return nil
		}
		_ = c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF,
				buffer)
		})
		return err
	}}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(o.server.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /a2a/%s HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		o.agent, o.sender, len(body), body); err != nil {
		t.Fatal(err)
	}
	return &rawStream{Conn: conn, r: bufio.NewReaderSize(conn, 4096)}
}

// openStreams opens streams and reads the events that exist.
func openStreams(t *testing.T, o *taskOrg, id string, n int) []*rawStream {
	t.Helper()
	out := make([]*rawStream, n)
	for i := range out {
		out[i] = o.openRaw(t, id, 0)
		if i%100 == 99 { // no more at once than the server's backlog holds
			awaitAll(t, out[i-99:i+1], `"working"`)
		}
	}
	awaitAll(t, out[n-n%100:], `"working"`)
	return out
}

// awaitAll reads every stream up to an event that contains the text.
func awaitAll(t *testing.T, streams []*rawStream, text string) {
	t.Helper()
	var wg sync.WaitGroup
	failed := make(chan error, len(streams))
	for _, s := range streams {
		wg.Go(func() {
			_ = s.SetReadDeadline(time.Now().Add(2 * time.Minute))
			if err := s.await(text); err != nil {
				failed <- err
			}
		})
	}
	wg.Wait()
	if n := len(failed); n > 0 {
		t.Fatalf("%d of %d streams lack %s, want none; one of them: %v", n, len(streams), text, <-failed)
	}
}

// await reads until a line contains the text. Lines may be longer than the buffer: the text is
// near the start or the end of one.
func (s *rawStream) await(text string) error {
	for {
		line, err := s.r.ReadSlice('\n')
		if strings.Contains(string(line), text) {
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
	}
}
