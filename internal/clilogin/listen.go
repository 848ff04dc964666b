package clilogin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// listener waits on a local port for the redirect of the browser.
type listener struct {
	redirect string
	answers  chan url.Values
	results  chan error // how the login ended; one value
	server   *http.Server
}

// resultWithin is how long the browser waits for the end of the login, which takes one more request
// to the server.
const resultWithin = 20 * time.Second

// listen opens a free port for the path of the redirect URI.
func (q *question) listen(redirect string) (*listener, error) {
	u, err := url.Parse(redirect)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(u.Hostname(), "0"))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the redirect of the browser: %w; try parley login --no-browser", err)
	}
	u.Host = ln.Addr().String()
	l := &listener{redirect: u.String(), answers: make(chan url.Values, 1), results: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+u.Path, func(w http.ResponseWriter, r *http.Request) {
		v := r.URL.Query()
		// Any page can send a browser here. A request without the right state must not
		// replace the real redirect.
		if !q.matches(v) {
			page(w, http.StatusBadRequest, "Not signed in", "This is not the response that parley login waits for. "+
				"You can close this tab.")
			return
		}
		select {
		case l.answers <- v:
			l.showResult(w, r, q.Issuer)
		default:
			page(w, http.StatusConflict, "Already decided", "Parley has your decision. You can close this tab.")
		}
	})
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	go func() { _ = l.server.Serve(ln) }() // ends with close
	return l, nil
}

// showResult waits for the end of the login and shows it.
func (l *listener) showResult(w http.ResponseWriter, r *http.Request, server string) {
	select {
	case err := <-l.results:
		if err != nil {
			page(w, http.StatusOK, "Not signed in", "The command line is not signed in: "+err.Error()+
				". You can close this tab.")
			return
		}
		page(w, http.StatusOK, "Signed in", "The command line is signed in to "+server+
			". You can close this tab and go back to the terminal.")
	case <-time.After(resultWithin):
		page(w, http.StatusOK, "Back to the terminal", "Parley has your decision; the terminal shows how the login ended. "+
			"You can close this tab.")
	case <-r.Context().Done(): // the browser is gone
	}
}

// end tells the browser how the login ended, and stops the listener.
func (l *listener) end(err error) {
	l.results <- err
	l.close()
}

func (l *listener) answer(ctx context.Context) (url.Values, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case v := <-l.answers:
		return v, nil
	}
}

// close stops the listener after the browser got its page.
func (l *listener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
}

// BrowserVariable is the environment variable with the command that opens URLs.
const BrowserVariable = "PARLEY_BROWSER"

// Open opens a URL in the person's browser.
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
