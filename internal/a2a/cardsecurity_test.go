package a2a

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/parley-dev/parley/internal/httpx"
)

const (
	goAgent  = "Go-http-client/1.1"
	echoCard = "/a2a/echo/.well-known/agent-card.json"
)

// withOAuth adds an authorization server to the cards, and its metadata to challenges.
func withOAuth(h *httpx.Options, o *Options) {
	h.ResourceMetadata = "https://example.com/.well-known/oauth-protected-resource"
	o.OAuth = &OAuthURLs{
		Authorize: "https://example.com/oauth/authorize", Token: "https://example.com/oauth/token",
		Metadata: "https://example.com/.well-known/oauth-authorization-server",
	}
}

// alternatives are the schemes of which a client needs one, in order.
var alternatives = []string{"bearer", "oauth2", "oauth2ClientCredentials"}

// Clients that follow the protobuf definition read the requirements from the card of version 1.0,
// from the card for all versions, and from the extended card of every binding.
func TestCardsSayHowToAuthenticate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withOAuth)
	ada := w.caller("user:ada")
	cards := map[string]string{
		"version 1.0":  w.do("", "GET", echoCard, "", "A2A-Version", "1.0").Body,
		"any version":  w.do("", "GET", echoCard, "", "User-Agent", "python-httpx/0.28.1").Body,
		"extended":     w.do(ada, "GET", "/a2a/echo/extendedAgentCard", "").Body,
		"of JSON-RPC":  result(t, w.rpc(ada, "echo", "GetExtendedAgentCard", "{}").Body),
		"for 0.3 REST": w.do(ada, "GET", "/a2a/echo/v1/card", "").Body,
	}
	ctx := as(t.Context(), ada)
	request := &a2apb.GetExtendedAgentCardRequest{Tenant: "echo"}
	extended, err := a2apb.NewA2AServiceClient(dial(t, w.h2c())).GetExtendedAgentCard(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	asGo, err := grpc.NewClient(w.h2c(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUserAgent(goAgent))
	if err != nil {
		t.Fatal(err)
	}
	defer asGo.Close()
	toGo, err := a2apb.NewA2AServiceClient(asGo).GetExtendedAgentCard(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]*a2apb.AgentCard{"of gRPC": extended, "of gRPC, whatever the client": toGo}
	for name, text := range cards {
		read[name] = &a2apb.AgentCard{}
		err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), read[name])
		if err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
		}
	}
	for name, card := range read {
		var got []string
		for _, r := range card.GetSecurityRequirements() {
			for scheme, scopes := range r.GetSchemes() {
				got = append(got, scheme)
				if diff := cmp.Diff(callScopes, scopes.GetList()); diff != "" {
					t.Errorf("%s, %s: %s", name, scheme, diff)
				}
			}
		}
		if diff := cmp.Diff(alternatives, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		schemes := card.GetSecuritySchemes()
		if s := schemes["bearer"].GetHttpAuthSecurityScheme(); s.GetScheme() != "Bearer" {
			t.Errorf("%s: scheme = %v, want Bearer", name, s)
		}
		code := schemes["oauth2"].GetOauth2SecurityScheme()
		f := code.GetFlows().GetAuthorizationCode()
		if f.GetTokenUrl() != "https://example.com/oauth/token" || !f.GetPkceRequired() ||
			f.GetScopes()["svc:a2a:write"] == "" {
			t.Errorf("%s: flow = %v, want PKCE, the token URL and the scope", name, code)
		}
		credentials := schemes["oauth2ClientCredentials"].GetOauth2SecurityScheme()
		if f := credentials.GetFlows().GetClientCredentials(); f.GetTokenUrl() != "https://example.com/oauth/token" {
			t.Errorf("%s: flow = %v, want the token URL", name, credentials)
		}
	}
}

// The parsers of both versions in the SDK for Go read scopes only as a bare list.
func TestTheGoSDKReadsCards(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withOAuth)
	ada := w.caller("user:ada")
	old := a2av0.NewAgentCardParser()
	for name, text := range map[string]string{
		"any version": w.do("", "GET", echoCard, "", "User-Agent", goAgent).Body,
		"version 1.0": w.do("", "GET", echoCard, "", "User-Agent", "my-app/2 "+goAgent, "A2A-Version", "1.0").Body,
		"extended":    w.do(ada, "GET", "/a2a/echo/extendedAgentCard", "", "User-Agent", goAgent).Body,
		"of JSON-RPC": result(t, w.rpc(ada, "echo", "GetExtendedAgentCard", "{}", "User-Agent", goAgent).Body),
		"version 0.3": w.do("", "GET", echoCard, "", "User-Agent", goAgent, "A2A-Version", "0.3").Body,
	} {
		parsers := map[string]func([]byte) (*sdk.AgentCard, error){"0.3": old}
		if name != "version 0.3" {
			parsers["1.0"] = func(b []byte) (*sdk.AgentCard, error) {
				var c sdk.AgentCard
				return &c, json.Unmarshal(b, &c)
			}
		}
		for version, parse := range parsers {
			card, err := parse([]byte(text))
			if err != nil {
				t.Errorf("%s, parser of %s: err = %v, want nil", name, version, err)
				continue
			}
			var got []string
			for _, r := range card.SecurityRequirements {
				for scheme := range r {
					got = append(got, string(scheme))
				}
			}
			if diff := cmp.Diff(alternatives, got); diff != "" || len(card.SecuritySchemes) != len(alternatives) {
				t.Errorf("%s, parser of %s: %s %v", name, version, diff, card.SecuritySchemes)
			}
		}
	}
	vary := w.do("", "GET", echoCard, "").Header.Get("Vary")
	if !strings.Contains(vary, "User-Agent") || !strings.Contains(vary, "Authorization") {
		t.Errorf("Vary = %s, want User-Agent and Authorization", vary)
	}
}

// The challenge of a refused caller names where to get access tokens.
func TestChallengesNameTheMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withOAuth)
	few := w.key("acme", "service:reader", "svc:tasks:read")
	for name, a := range map[string]*answer{
		"JSON-RPC":     w.rpc("", "echo", "SendMessage", "{}"),
		"a bad key":    w.rpc("parley_bad", "echo", "SendMessage", "{}"),
		"HTTP+JSON":    w.do("", "POST", "/a2a/echo/message:send", "{}"),
		"too few":      w.rpc(few, "echo", "SendMessage", "{}"),
		"an old REST":  w.do("", "GET", "/a2a/echo/v1/tasks/x", ""),
		"the own card": w.do("", "GET", "/a2a/echo/extendedAgentCard", ""),
	} {
		challenge := a.Header.Get("WWW-Authenticate")
		const want = `, resource_metadata="https://example.com/.well-known/oauth-protected-resource"`
		if !strings.HasSuffix(challenge, want) {
			t.Errorf("%s: got %d %q, want the suffix %q", name, a.Status, challenge, want)
		}
	}
}

func TestCardsAdvertiseTheBindingsThatAreSet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  []string
		v1   []string
		v03  []string
		pref string
	}{
		"by default": {
			nil,
			[]string{"JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3"},
			[]string{"JSONRPC", "HTTP+JSON"},
			"JSONRPC",
		},
		"all": {
			[]string{"grpc", "http+json", "jsonrpc"},
			[]string{"GRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 1.0", "HTTP+JSON 0.3", "JSONRPC 0.3"},
			[]string{"HTTP+JSON", "JSONRPC"},
			"HTTP+JSON",
		},
		"one of them": {
			[]string{"http+json"}, []string{"HTTP+JSON 1.0", "HTTP+JSON 0.3"}, []string{"HTTP+JSON"}, "HTTP+JSON",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(_ *httpx.Options, o *Options) { o.CardBindings = c.set })
			var card officialCard
			if err := json.Unmarshal([]byte(w.do("", "GET", echoCard, "", "A2A-Version", "1.0").Body), &struct {
				SupportedInterfaces *[]cardInterface `json:"supportedInterfaces"`
			}{&card.SupportedInterfaces}); err != nil {
				t.Fatal(err)
			}
			var v1, v03 []string
			for _, i := range card.SupportedInterfaces {
				v1 = append(v1, i.ProtocolBinding+" "+i.ProtocolVersion)
				if (i.ProtocolBinding == "GRPC") != (i.URL == "example.com:80" && i.Tenant == "echo") {
					t.Errorf("interface = %+v, want host:port and a tenant for gRPC only", i)
				}
			}
			var old struct {
				PreferredTransport   string               `json:"preferredTransport"`
				AdditionalInterfaces []transportInterface `json:"additionalInterfaces"`
			}
			if err := json.Unmarshal([]byte(w.do("", "GET", echoCard, "", "A2A-Version", "0.3").Body), &old); err != nil {
				t.Fatal(err)
			}
			for _, i := range old.AdditionalInterfaces {
				v03 = append(v03, i.Transport)
			}
			if diff := cmp.Diff(c.v1, v1) + cmp.Diff(c.v03, v03) + cmp.Diff(c.pref, old.PreferredTransport); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// result returns the result of a JSON-RPC response.
func result(tb testing.TB, body string) string {
	tb.Helper()
	var envelope struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(body), &envelope); err != nil || envelope.Result == nil {
		tb.Fatalf("no result: %v in %s", err, body)
	}
	return string(envelope.Result)
}
