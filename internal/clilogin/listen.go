package clilogin

import (
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// listener waits on a port of this machine for the browser to come back.
type listener struct {
	redirect string
	answers  chan url.Values
	server   *http.Server
}

// listen opens a free port for the path of the redirect address.
func (q *question) listen(redirect string) (*listener, error) {
	u, err := url.Parse(redirect)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(u.Hostname(), "0"))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the answer of the browser: %w; try parley login --no-browser", err)
	}
	u.Host = ln.Addr().String()
	l := &listener{redirect: u.String(), answers: make(chan url.Values, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+u.Path, func(w http.ResponseWriter, r *http.Request) {
		v := r.URL.Query()
		// Any page can send a browser here. What does not know the state is no answer, and
		// must not keep the real one from arriving.
		if !q.matches(v) {
			page(w, http.StatusBadRequest, "This is not the answer that parley login waits for.")
			return
		}
		select {
		case l.answers <- v:
			page(w, http.StatusOK, "Parley has your answer. You can close this window and go back to the terminal.")
		default:
			page(w, http.StatusConflict, "This was answered already. You can close this window.")
		}
	})
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	go func() { _ = l.server.Serve(ln) }() // ends with close
	return l, nil
}

func (l *listener) answer(ctx context.Context) (url.Values, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case v := <-l.answers:
		return v, nil
	}
}

// close lets the browser have its page.
func (l *listener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
}

func page(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the code
	h.Set("Connection", "close")
	w.WriteHeader(status)
	// The browser may have gone away.
	_, _ = fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Parley</title>\n<p>%s</p>\n", html.EscapeString(text))
}

// BrowserVariable names the program that opens addresses instead of the system's own.
const BrowserVariable = "PARLEY_BROWSER"

// Open shows an address in the person's browser, if there is a way.
func Open(address string) error {
	var command []string
	switch chosen := strings.Fields(os.Getenv(BrowserVariable)); {
	case len(chosen) > 0:
		command = chosen
	case runtime.GOOS == "darwin":
		command = []string{"open"}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		command = []string{"xdg-open"}
	}
	cmd := exec.Command(command[0], append(command[1:], address)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
