package a2a

import (
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json/jsontext"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
)

const testKeys = "http://example.com/.well-known/jwks.json"

// signed makes a server sign its cards, and returns the public key.
func signed(tb testing.TB) (edit func(*httpx.Options, *Options), public jose.JSONWebKey) {
	tb.Helper()
	text, err := NewCardKey()
	if err != nil {
		tb.Fatal(err)
	}
	key, err := ParseCardKey(text)
	if err != nil {
		tb.Fatal(err)
	}
	if err := public.UnmarshalJSON([]byte(key.JWK())); err != nil {
		tb.Fatal(err)
	}
	if _, ok := public.Key.(*ecdsa.PublicKey); !ok || !public.Valid() || !public.IsPublic() {
		tb.Fatalf("JWK = %s, want a valid public key", key.JWK())
	}
	return func(h *httpx.Options, o *Options) {
		withOAuth(h, o)
		o.CardKey, o.KeysURL = key, testKeys
	}, public
}

// verify checks a signature of a payload with another library, as any client would.
func verify(public jose.JSONWebKey, s *a2apb.AgentCardSignature, payload []byte) bool {
	jws, err := jose.ParseSignedCompact(
		s.GetProtected()+"."+base64.RawURLEncoding.EncodeToString(payload)+"."+s.GetSignature(),
		[]jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return false
	}
	header := jws.Signatures[0].Protected
	_, err = jws.Verify(public)
	return err == nil && header.KeyID == public.KeyID &&
		header.ExtraHeaders["jku"] == testKeys && header.ExtraHeaders["typ"] == "JOSE"
}

// Clients that read a card into the type of the protocol find a valid signature over its canonical
// form: for the card of version 1.0, the card for all versions, and extended cards.
func TestCardsAreSigned(t *testing.T) {
	t.Parallel()
	edit, public := signed(t)
	w := newWorld(t, edit)
	ada := w.caller("user:ada")
	rich := agent.Agent{
		ID: "rich", Org: "acme", Name: "Übersetzer", Public: true,
		Description: "Says <it> & more\u2028 in 日本語 and 🦜.",
		Quota:       agent.Quota{Tasks: agent.MaxQuota, Per: agent.Day},
	}
	rich.Describe([]agent.Skill{{
		ID: "t", Name: "Translate", Tags: []string{"nlp"}, Examples: []string{"Ça va?"}, InputModes: []string{"text/plain"},
	}})
	rich.Profile.Provider = agent.Provider{Organization: "Acme", URL: "https://acme.example"}
	w.orgs.Agent(rich)
	for name, text := range map[string]string{
		"version 1.0":   w.do("", "GET", echoCard, "", "A2A-Version", "1.0").Body,
		"any version":   w.do("", "GET", echoCard, "").Body,
		"extended":      w.do(ada, "GET", "/a2a/echo/extendedAgentCard", "").Body,
		"by JSON-RPC":   result(t, w.rpc(ada, "bot", "GetExtendedAgentCard", "{}").Body),
		"not ASCII":     w.do("", "GET", "/a2a/rich/.well-known/agent-card.json", "").Body,
		"the platform":  w.do("", "GET", "/.well-known/agent-card.json", "").Body,
		"1.0, platform": w.do(ada, "GET", "/.well-known/agent-card.json", "", "A2A-Version", "1.0").Body,
	} {
		card := &a2apb.AgentCard{}
		err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), card)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		signatures := card.GetSignatures()
		card.Signatures = nil
		plain, err := protojson.Marshal(card)
		if err != nil {
			t.Fatal(err)
		}
		payload := jsontext.Value(plain)
		if err := payload.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		holds := func(payload []byte) bool {
			return slices.ContainsFunc(signatures, func(s *a2apb.AgentCardSignature) bool {
				return verify(public, s, payload)
			})
		}
		if !holds(payload) {
			t.Errorf("%s: no valid signature: %s", name, text)
		}
		if !holds(asciiOnly(payload)) {
			t.Errorf("%s: no valid signature for clients that escape non-ASCII characters", name)
		}
		if holds([]byte(strings.Replace(string(payload), "/a2a", "/evil", 1))) {
			t.Errorf("%s: a changed card has a valid signature", name)
		}
	}
	// The ETag is the same as long as the card is: signing is deterministic.
	first := w.do("", "GET", echoCard, "").Header.Get("ETag")
	other := newSigner(t, w, edit)
	if again := other.do("", "GET", echoCard, "").Header.Get("ETag"); again != first {
		t.Errorf("ETag of another node = %s, want %s", again, first)
	}
}

// newSigner returns another node on the same store.
func newSigner(tb testing.TB, w *world, edit func(*httpx.Options, *Options)) *world {
	tb.Helper()
	h := w.orgs.Router()
	o := Options{
		Tasks: w.tasks.Tasks, Workers: w.tasks.Workers, Agents: w.registry, Directory: w.orgs.Directory,
		Version: "1.2.3", PublicURL: exampleURL,
	}
	edit(&h, &o)
	rt := httpx.NewRouter(h)
	Mount(rt, o)
	other := *w
	other.handler = rt
	return &other
}

// The payload for version 0.3 is that of its Python SDK: without default values.
func TestCardsOfVersion03AreSigned(t *testing.T) {
	t.Parallel()
	edit, public := signed(t)
	w := newWorld(t, edit)
	var card map[string]any
	if err := json.Unmarshal([]byte(w.do("", "GET", echoCard, "", "A2A-Version", "0.3").Body), &card); err != nil {
		t.Fatal(err)
	}
	var signatures []*a2apb.AgentCardSignature
	for _, s := range card["signatures"].([]any) {
		m := s.(map[string]any)
		signatures = append(signatures, &a2apb.AgentCardSignature{
			Protected: m["protected"].(string), Signature: m["signature"].(string),
		})
	}
	for _, name := range []string{"signatures", "protocolVersion", "preferredTransport"} {
		delete(card, name)
	}
	for _, s := range card["securitySchemes"].(map[string]any) {
		delete(s.(map[string]any), "type")
	}
	card["security"] = card["security"].([]any)[1:] // the first has an empty list
	payload, err := json.Marshal(card)
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(payload)
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	valid := func(s *a2apb.AgentCardSignature) bool { return verify(public, s, v) }
	if !slices.ContainsFunc(signatures, valid) {
		t.Errorf("no valid signature for %s", v)
	}
}

func TestAStoredCardKeyThatIsNoneIsNotShown(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "!", "c2VjcmV0", base64.StdEncoding.EncodeToString([]byte("secret"))} {
		if _, err := ParseCardKey(s); err == nil || strings.Contains(err.Error(), "secret\"") {
			t.Errorf("%q: err = %v, want one without the key", s, err)
		}
	}
}
