package httpx

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// streaming serves a stream. tls says whether over HTTPS.
func streaming(t *testing.T, tls bool, run func(r *http.Request, w http.ResponseWriter)) (*Router, *http.Client, string) {
	t.Helper()
	rt := NewRouter(Options{Logger: slog.New(slog.DiscardHandler)})
	rt.HandlePublic("GET /stream", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rt.Stream(r, func() { run(r, w) })
	}))
	srv := httptest.NewUnstartedServer(rt)
	srv.Config.ConnContext = WithConn
	if tls {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return rt, srv.Client(), srv.URL + "/stream"
}

func get(t *testing.T, c *http.Client, url string) *http.Response {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestAStreamTakesOverItsConnection(t *testing.T) {
	t.Parallel()
	for _, tls := range []bool{false, true} {
		large := strings.Repeat("x", 3*chunkSize+17)
		rt, client, url := streaming(t, tls, func(r *http.Request, w http.ResponseWriter) {
			sse := NewSSE(w)
			if sse.conn == nil {
				t.Error("net/http has the connection, want the stream to have it")
			}
			for _, s := range []string{"small", large} {
				if err := errors.Join(sse.Event(1, []byte(s)), sse.Flush()); err != nil {
					t.Error(err)
				}
			}
			_ = sse.Comment() // not flushed
			if r.Context().Err() != nil {
				t.Errorf("the context of the stream has ended: %v", r.Context().Err())
			}
		})
		res := get(t, client, url)
		body, err := io.ReadAll(res.Body)
		if want := "id: 1\ndata: small\n\nid: 1\ndata: " + large + "\n\n:\n\n"; err != nil || string(body) != want {
			t.Errorf("got %d bytes, %v, want %d", len(body), err, len(want))
		}
		h := res.Header
		if res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("X-Request-Id") == "" ||
			h.Get("Date") == "" || !res.Close {
			t.Errorf("got %s with header %v, want that of a stream on its own connection", res.Status, h)
		}
		if err := rt.CloseStreams(t.Context()); err != nil {
			t.Errorf("CloseStreams = %v, want no error", err)
		}
	}
}

// A response that never becomes a stream is an ordinary one.
func TestARefusedStreamIsAnOrdinaryResponse(t *testing.T) {
	t.Parallel()
	_, client, url := streaming(t, false, func(r *http.Request, w http.ResponseWriter) {
		WriteError(w, r, errs.ErrNotFound)
	})
	if res := get(t, client, url); res.StatusCode != 404 || res.Close {
		t.Errorf("got %s, close %v, want 404 on a connection that stays open", res.Status, res.Close)
	}
}

func TestAStreamNoticesThatItsClientIsGone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a later write fails")
	}
	gone := make(chan error, 1)
	rt, client, url := streaming(t, false, func(_ *http.Request, w http.ResponseWriter) {
		sse := NewSSE(w)
		err := sse.Flush()
		for err == nil {
			time.Sleep(time.Millisecond)
			err = sse.Flush() // nothing to send
		}
		gone <- err
	})
	res := get(t, client, url)
	_ = res.Body.Close()
	if err := <-gone; !errors.Is(err, errClientGone) {
		t.Errorf("Flush = %v, want %v", err, errClientGone)
	}
	if err := rt.CloseStreams(t.Context()); err != nil {
		t.Error(err)
	}
}

// The store is closed after CloseStreams, so it must not return before the last stream has ended.
func TestCloseStreamsWaitsForStreams(t *testing.T) {
	t.Parallel()
	leave, left := make(chan struct{}), make(chan struct{})
	rt, client, url := streaming(t, false, func(_ *http.Request, w http.ResponseWriter) {
		sse := NewSSE(w)
		_ = sse.Flush()
		<-leave
		_ = sse.Retry(time.Second)
		close(left)
	})
	res := get(t, client, url)
	closed := make(chan error, 1)
	go func() { closed <- rt.CloseStreams(context.Background()) }()
	select {
	case err := <-closed:
		t.Fatalf("CloseStreams = %v beside an open stream, want it to wait", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	if err := <-closed; err != nil {
		t.Errorf("CloseStreams = %v, want no error", err)
	}
	select {
	case <-left:
	default:
		t.Error("CloseStreams returned before the stream had ended")
	}
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "retry: 1000\n\n" {
		t.Errorf("got %q, %v, want a clean end with a hint", body, err)
	}
}

func TestCloseStreamsCutsOffStreams(t *testing.T) {
	t.Parallel()
	rt, client, url := streaming(t, false, func(r *http.Request, w http.ResponseWriter) {
		_ = NewSSE(w).Flush()
		<-r.Context().Done()
	})
	res := get(t, client, url)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rt.CloseStreams(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("CloseStreams = %v, want %v", err, context.Canceled)
	}
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the response looks complete, want an error")
	}
}

// A panic ends its stream only, and the client sees that the response is incomplete.
func TestAPanicEndsOneStream(t *testing.T) {
	t.Parallel()
	rt, client, url := streaming(t, false, func(_ *http.Request, w http.ResponseWriter) {
		_ = NewSSE(w).Flush()
		Aside(func() { panic("oops") })
	})
	res := get(t, client, url)
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the response looks complete, want an error")
	}
	if err := rt.CloseStreams(t.Context()); err != nil {
		t.Error(err)
	}
}
