package a2a

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// CardKey signs cards (JWS with ES256). All nodes share it.
type CardKey struct {
	key *ecdsa.PrivateKey
	jwk string
	kid string
}

// NewCardKey generates a private key, as text for the store.
func NewCardKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return base64.StdEncoding.EncodeToString(der), err
}

// ParseCardKey reads a key that NewCardKey made.
func ParseCardKey(s string) (*CardKey, error) {
	unreadable := errors.New("the stored key for cards cannot be parsed") // without the key, which is secret
	der, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, unreadable
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, unreadable
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, unreadable
	}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, unreadable
	}
	x, y := encode64(point[1:33]), encode64(point[33:])
	// The members and their order are those of a thumbprint (RFC 7638).
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, x, y))
	k := &CardKey{key: key, kid: encode64(sum[:])}
	k.jwk = fmt.Sprintf(`{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"%s","x":"%s","y":"%s"}`,
		k.kid, x, y)
	return k, nil
}

// JWK returns the public key (RFC 7517).
func (k *CardKey) JWK() string { return k.jwk }

func encode64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// cardSignature is a JWS whose payload is the card (RFC 7515, appendix F).
type cardSignature struct {
	Protected string `json:"protected"`
	Signature string `json:"signature"`
}

// cardSigner makes the signatures of cards.
type cardSigner struct {
	key       *CardKey
	protected string // the header, the same for all cards
}

// newCardSigner makes a signer whose header has the URL of the public key.
func newCardSigner(key *CardKey, keysURL string) *cardSigner {
	if key == nil {
		return nil
	}
	header, err := json.Marshal(map[string]string{"alg": "ES256", "typ": "JOSE", "kid": key.kid, "jku": keysURL})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return &cardSigner{key, encode64(header)}
}

// sign signs a payload. The same payload has the same signature on every node (RFC 6979), so that
// the ETag of a card changes only with its content.
func (s *cardSigner) sign(payload []byte) (cardSignature, error) {
	digest := sha256.Sum256([]byte(s.protected + "." + encode64(payload)))
	der, err := s.key.key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return cardSignature{}, err
	}
	var point struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &point); err != nil {
		return cardSignature{}, err
	}
	var out [64]byte
	point.R.FillBytes(out[:32])
	point.S.FillBytes(out[32:])
	return cardSignature{s.protected, encode64(out[:])}, nil
}

// signatures signs a card. Clients accept it if one signature is valid. The first is that of the
// protocol (section 8.4 of version 1.0). Two more are for SDKs that compute the payload
// differently: see docs/decisions.md.
func (s *cardSigner) signatures(card func(cardForm) officialCard, f cardForm) ([]cardSignature, error) {
	var payloads [][]byte
	if f.v1() {
		payload, err := canonical(card(cardForm{version: version1, extended: f.extended}))
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, payload)
		if ascii := asciiOnly(payload); !bytes.Equal(ascii, payload) {
			payloads = append(payloads, ascii)
		}
	}
	if f.v03() {
		payload, err := canonical(card(cardForm{version: version03, extended: f.extended}).withoutDefaults())
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, asciiOnly(payload))
	}
	var out []cardSignature
	for _, payload := range payloads {
		signature, err := s.sign(payload)
		if err != nil {
			return nil, err
		}
		out = append(out, signature)
	}
	return out, nil
}

// canonical encodes a card without signatures (RFC 8785). Cards contain no empty values: the
// protocol omits some of them here, and SDKs omit all.
func canonical(c officialCard) ([]byte, error) {
	c.Signatures = nil
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(text)
	err = v.Canonicalize()
	return v, err
}

// withoutDefaults omits what the Python SDK for version 0.3 omits from the payload: members with
// the default value of their type, and empty lists.
func (c officialCard) withoutDefaults() officialCard {
	c.ProtocolVersion = "" // 0.3.0
	if c.PreferredTransport == transports[bindingJSONRPC] {
		c.PreferredTransport = ""
	}
	schemes := map[string]securityScheme{}
	for name, s := range c.SecuritySchemes {
		s.Type = ""
		schemes[name] = s
	}
	c.SecuritySchemes = schemes
	var security []map[string][]string
	for _, alternative := range c.Security {
		kept := map[string][]string{}
		for name, scopes := range alternative {
			if len(scopes) > 0 {
				kept[name] = scopes
			}
		}
		if len(kept) > 0 {
			security = append(security, kept)
		}
	}
	c.Security = security
	c.Skills = slices.Clone(c.Skills)
	for i := range c.Skills {
		c.Skills[i].URL = "" // not in version 0.3
	}
	return c
}

// asciiOnly escapes non-ASCII characters, as the Python SDK does before it signs.
func asciiOnly(text []byte) []byte {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(text)+len(text)/4)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = append(out, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
		}
	}
	return out
}
