package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/config"
)

type healthCmd struct {
	jsonFlag `embed:""`
	Server   string        `help:"URL of the server; the one that PARLEY_LISTEN of this machine describes if not given." env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
	Timeout  time.Duration `help:"How long the server may take to respond; ${default} if not given." default:"3s" placeholder:"DURATION"`
}

// Help is shown by --help.
func (healthCmd) Help() string {
	return "Asks /readyz once, and sends no credentials. The exit code is 0 if the server is ready, and 1 if it is not, " +
		"or does not respond. It is the health check of the container image: without --server it asks the server that the " +
		"settings in the environment describe (PARLEY_LISTEN, PARLEY_TLS_CERT, PARLEY_ACME), or " + defaultServer +
		". The certificate of a server on the same machine is not verified, because it is for the public name.\n\n" + examples(
		"parley health",
		"parley health --server https://parley.example --json",
	)
}

// healthJSON is the output of --json.
type healthJSON struct {
	URL    string `json:"url"`
	Ready  bool   `json:"ready"`
	Status int    `json:"status,omitempty"` // of the response; none without one
	Reason string `json:"reason,omitempty"` // why the server is not ready
}

func (c *healthCmd) Run(e *env) error {
	if c.Timeout <= 0 {
		return usage("--timeout must be more than 0; it is %s", c.Timeout)
	}
	at := ownServer(os.Getenv)
	if c.Server != "" {
		at = healthTarget{url: strings.TrimRight(c.Server, "/")}
	}
	if err := checkServer(at.url); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, c.Timeout)
	defer cancel()
	out := at.ask(ctx)
	if e.ctx.Err() != nil {
		return e.ctx.Err() // interrupted
	}
	if c.JSON {
		if err := e.printJSON(out); err != nil {
			return err
		}
	}
	if !out.Ready {
		return fmt.Errorf("%s is not ready: %s", out.URL, out.Reason)
	}
	if c.JSON {
		return nil
	}
	_, err := fmt.Fprintf(e.stdout, "%s is ready\n", out.URL)
	return err
}

// healthTarget is a server to ask.
type healthTarget struct {
	url  string
	name string // of the certificate; that of the URL if empty
}

// ownServer returns the server that the environment of a server on this machine describes.
func ownServer(getenv func(string) string) healthTarget {
	addr := getenv("PARLEY_LISTEN")
	first, _, _ := strings.Cut(getenv("PARLEY_ACME"), ",")
	if addr == "" {
		if first == "" && getenv("PARLEY_TLS_CERT") == "" {
			return healthTarget{url: defaultServer}
		}
		addr = "127.0.0.1:8080"
		if first != "" {
			addr = config.ACMEListen
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return healthTarget{url: defaultServer}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if first != "" || getenv("PARLEY_TLS_CERT") != "" {
		scheme = "https"
	}
	return healthTarget{url: scheme + "://" + net.JoinHostPort(host, port), name: strings.TrimSpace(first)}
}

// maxReadiness is larger than any response of /readyz.
const maxReadiness = 64 << 10

// ask asks the server once whether it is ready.
func (t healthTarget) ask(ctx context.Context) healthJSON {
	out := healthJSON{URL: t.url}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+"/readyz", nil)
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	res, err := t.client().Do(req)
	if err != nil {
		out.Reason = notReached(err)
		return out
	}
	defer func() { _ = res.Body.Close() }()
	out.Status, out.Ready = res.StatusCode, res.StatusCode == http.StatusOK
	if out.Ready {
		return out
	}
	var problem struct {
		Detail string `json:"detail"`
		Title  string `json:"title"`
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxReadiness))
	_ = json.Unmarshal(body, &problem) // a proxy may respond with something else
	out.Reason = cmp.Or(problem.Detail, problem.Title, "it responds with "+res.Status)
	return out
}

// client returns a client that neither follows redirects nor uses a proxy for this machine.
func (t healthTarget) client() *http.Client {
	u, _ := url.Parse(t.url) // was checked
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{ServerName: t.name, MinVersion: tls.VersionTLS12},
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		transport.TLSClientConfig.InsecureSkipVerify = true // no secret is sent, and the certificate names another host
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// notReached says why there was no response.
func notReached(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not respond in time"
	}
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	return err.Error()
}
