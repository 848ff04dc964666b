package relay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/text"
)

// Extension is the URI of the extension by which cards of Parley name their platform.
const Extension = "https://parley.dev/extensions/relay/v1"

const (
	cardTimeout = 10 * time.Second
	maxCard     = 1 << 20
)

// Card is what is used of a remote's card. It is stored with the relay.
type Card struct {
	Name, Version string
	Endpoint      Endpoint
	Streaming     bool
	// Platforms are the platforms of Parley that the remote belongs to or leads to.
	Platforms []string `json:",omitempty"`

	URL  string // of the card
	ETag string `json:",omitempty"`
}

// Endpoint is where and how the remote is called.
type Endpoint struct {
	URL     string
	Binding string // JSONRPC, HTTP+JSON or GRPC
	Version string // 1.0 or 0.3
	Tenant  string `json:",omitempty"`
}

// The bindings, as cards name them.
const (
	bindingRPC  = "JSONRPC"
	bindingREST = "HTTP+JSON"
	bindingGRPC = "GRPC"
)

// The versions of the protocol.
const (
	version1  = "1.0"
	version03 = "0.3"
)

func decodeCard(s string) (c Card) {
	_ = json.Unmarshal([]byte(s), &c) // an empty card has no endpoint
	return c
}

func (c *Card) encode() string {
	b, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	return string(b)
}

// document is a card as the remote publishes it, in version 1.0 or 0.3. It has only what is used,
// so that nothing else in it can be wrong.
type document struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`

	SupportedInterfaces []struct {
		URL     string `json:"url"`
		Binding string `json:"protocolBinding"`
		Version string `json:"protocolVersion"`
		Tenant  string `json:"tenant"`
	} `json:"supportedInterfaces"`

	URL                  string `json:"url"`
	PreferredTransport   string `json:"preferredTransport"`
	AdditionalInterfaces []struct {
		URL       string `json:"url"`
		Transport string `json:"transport"`
	} `json:"additionalInterfaces"`

	Capabilities struct {
		Streaming  bool `json:"streaming"`
		Extensions []struct {
			URI    string          `json:"uri"`
			Params json.RawMessage `json:"params"`
		} `json:"extensions"`
	} `json:"capabilities"`
	InputModes  []string        `json:"defaultInputModes"`
	OutputModes []string        `json:"defaultOutputModes"`
	Skills      []documentSkill `json:"skills"`
}

type documentSkill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples"`
	InputModes  []string `json:"inputModes"`
	OutputModes []string `json:"outputModes"`
}

// candidates returns the URLs at which the card of a remote may be.
func candidates(u *url.URL) []string {
	if strings.HasSuffix(u.Path, ".json") {
		return []string{u.String()}
	}
	origin := *u
	origin.Path, origin.RawPath, origin.RawQuery = "", "", ""
	var out []string
	for _, base := range []*url.URL{u, &origin} {
		for _, name := range []string{"agent-card.json", "agent.json"} {
			at := base.JoinPath(".well-known", name).String()
			if !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// fetched is a card that was read.
type fetched struct {
	Card
	doc *document // nil: the card has not changed
}

// fetchCard reads the card of a remote. known is the card that was read before; it may be zero.
func (n *network) fetchCard(ctx context.Context, raw string, auth *authenticator, known Card) (fetched, *Problem) {
	if err := n.guard.Check(raw); err != nil {
		return fetched{}, lasting("%s", err)
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return fetched{}, lasting("must be an http or https URL without user name, password and fragment")
	}
	ctx, cancel := context.WithTimeout(ctx, cardTimeout)
	defer cancel()
	list := candidates(u)
	if i := slices.Index(list, known.URL); i > 0 { // where it was the last time
		list[0], list[i] = list[i], list[0]
	}
	for _, at := range list {
		f, p := n.fetchAt(ctx, at, auth, known)
		if p == nil {
			if f.doc == nil {
				return f, nil
			}
			f.Endpoint, p = n.choose(u, f.doc, auth != nil)
			return f, p
		}
		if !errors.Is(p, errMissing) {
			return fetched{}, p
		}
	}
	return fetched{}, lasting("no agent card was found there: tried %s", strings.Join(list, ", "))
}

// errMissing is the error of a URL that has no card.
var errMissing = &Problem{text: "there is no card"}

func (n *network) fetchAt(ctx context.Context, at string, auth *authenticator, known Card) (fetched, *Problem) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return fetched{}, lasting("is not a URL that can be requested")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "Parley/"+n.version+" (relay)")
	if known.ETag != "" && known.URL == at {
		r.Header.Set("If-None-Match", known.ETag)
	}
	name, value, err := auth.header(ctx)
	if err != nil {
		return fetched{}, passing("%s", explain(n.guard, auth, err))
	}
	if name != "" {
		r.Header.Set(name, value)
	}
	resp, err := n.client.Do(r)
	if err != nil {
		return fetched{}, passing("%s", explain(n.guard, auth, err))
	}
	defer func() { _ = resp.Body.Close() }()
	switch code := resp.StatusCode; {
	case code == http.StatusNotModified && known.ETag != "":
		return fetched{Card: known}, nil
	case code == http.StatusNotFound, code == http.StatusGone, code == http.StatusMethodNotAllowed:
		return fetched{}, errMissing
	case code == http.StatusUnauthorized:
		auth.refused()
		fallthrough
	case code != http.StatusOK:
		status := &statusError{code: code, target: resp.Header.Get("Location")}
		return fetched{}, &Problem{text: status.explain(auth), Passing: status.passes()}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCard+1))
	if err != nil {
		return fetched{}, passing("%s", explain(n.guard, auth, err))
	}
	if len(body) > maxCard {
		return fetched{}, lasting("its agent card has more than %d bytes", maxCard)
	}
	d := &document{}
	if err := json.Unmarshal(body, d); err != nil {
		return fetched{}, lasting("its agent card is not valid: %s", auth.said(err.Error()))
	}
	c := Card{
		Name: clean(d.Name, agent.MaxName), Version: clean(d.Version, 64),
		Streaming: d.Capabilities.Streaming, Platforms: d.platforms(), URL: at,
	}
	if tag := resp.Header.Get("ETag"); len(tag) <= 256 {
		c.ETag = tag
	}
	return fetched{Card: c, doc: d}, nil
}

// platforms returns the platforms that the card names.
func (d *document) platforms() (out []string) {
	for _, e := range d.Capabilities.Extensions {
		var params struct {
			Platform string   `json:"platform"`
			Via      []string `json:"via"`
		}
		if e.URI != Extension || json.Unmarshal(e.Params, &params) != nil {
			continue
		}
		for _, id := range append([]string{params.Platform}, params.Via...) {
			if id != "" && len(id) <= 64 && len(out) < 64 && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// maxEndpoints bounds how many usable interfaces of a card are kept.
const maxEndpoints = 64

// endpoints lists the interfaces of the card that can be used, in its order, version 1.0 first.
func (d *document) endpoints(base *url.URL) []Endpoint {
	var current, old []Endpoint
	for _, i := range d.SupportedInterfaces {
		e := Endpoint{URL: i.URL, Binding: i.Binding, Version: version1, Tenant: i.Tenant}
		if strings.HasPrefix(strings.TrimPrefix(i.Version, "v"), "0.") {
			e.Version = version03
			old = append(old, e)
		} else {
			current = append(current, e)
		}
	}
	if d.URL != "" {
		e := Endpoint{URL: d.URL, Binding: d.PreferredTransport, Version: version03}
		if e.Binding == "" {
			e.Binding = bindingRPC
		}
		old = append(old, e)
	}
	for _, i := range d.AdditionalInterfaces {
		old = append(old, Endpoint{URL: i.URL, Binding: i.Transport, Version: version03})
	}
	var out []Endpoint
	for _, e := range append(current, old...) {
		if len(out) == maxEndpoints {
			break
		}
		if e.Binding == bindingGRPC && !strings.Contains(e.URL, "://") {
			e.URL = base.Scheme + "://" + e.URL // the card has only host and port
		}
		known := e.Binding == bindingRPC || e.Binding == bindingREST || e.Binding == bindingGRPC
		if known && len(e.URL) <= agent.MaxURL && len(e.Tenant) <= 256 && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// choose returns the first interface of the card that may be called. A credential goes only to the
// origin of the URL that the admin gave.
func (n *network) choose(base *url.URL, d *document, credential bool) (Endpoint, *Problem) {
	list := d.endpoints(base)
	if len(list) == 0 {
		return Endpoint{}, lasting("its agent card offers no interface that can be used: " +
			"JSON-RPC, HTTP+JSON or gRPC of version 1.0 or 0.3")
	}
	var last *Problem
	for _, e := range list {
		u, err := url.Parse(e.URL)
		switch {
		case err != nil || u.Host == "" || u.User != nil:
			last = lasting("its agent card has an interface without a valid URL")
			continue
		case credential && !sameOrigin(base, u):
			last = lasting("its agent card leads to another origin, %s, to which the credential is not sent; "+
				"give the URL of the agent there, or register the relay without a credential", said(text.Origin(e.URL)))
			continue
		}
		if err := n.guard.Check(e.URL); err != nil {
			last = lasting("its agent card has the interface %s, whose URL %s", said(text.Origin(e.URL)), err)
			continue
		}
		return e, nil
	}
	return Endpoint{}, last
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case strings.EqualFold(u.Scheme, "http"):
		return "80"
	}
	return "443"
}

// network is how remotes are reached.
type network struct {
	guard   *outbound.Guard
	client  *http.Client // without a time limit
	tokens  *http.Client // to token URLs
	version string       // of Parley
	memory  *budget.Pool // for responses
}
