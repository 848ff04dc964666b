package webhook

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The message and the signatures of the test vectors of the specification's libraries.
const (
	vectorID      = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorBody    = `{"test": 2432232314}`
	vectorSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorV1      = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	vectorPrivate = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	vectorPublic  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	vectorV1a     = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
)

var vectorTime = time.Unix(1614265330, 0)

func mustSecret(t *testing.T, s string) []byte {
	t.Helper()
	b, err := ParseSecret(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustPrivate(t *testing.T, s string) ed25519.PrivateKey {
	t.Helper()
	key, err := ParsePrivateKey(s)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	current, old := mustSecret(t, vectorSecret), bytes.Repeat([]byte{7}, 32)
	oldV1 := Secrets{Current: old}.Sign(vectorID, vectorTime, []byte(vectorBody))
	private := mustPrivate(t, vectorPrivate)
	for _, c := range []struct {
		what    string
		secrets Secrets
		want    string
	}{
		{"one secret", Secrets{Current: current}, vectorV1},
		{"both kinds", Secrets{Current: current, Private: private}, vectorV1 + " " + vectorV1a},
		{
			"during a rotation",
			Secrets{Current: current, Old: old, OldUntil: vectorTime.Add(time.Second), Private: private},
			vectorV1 + " " + oldV1 + " " + vectorV1a,
		},
		{"at the end of a rotation", Secrets{Current: current, Old: old, OldUntil: vectorTime}, vectorV1},
		{"after a rotation", Secrets{Current: current, Old: old, OldUntil: vectorTime.Add(-time.Second)}, vectorV1},
		{"without an old secret", Secrets{Current: current, OldUntil: vectorTime.Add(time.Hour)}, vectorV1},
	} {
		if got := c.secrets.Sign(vectorID, vectorTime, []byte(vectorBody)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
	// The header has whole seconds, so the signature must have the same ones.
	later := vectorTime.Add(999 * time.Millisecond)
	if got := (Secrets{Current: current}).Sign(vectorID, later, []byte(vectorBody)); got != vectorV1 {
		t.Errorf("with a fraction of a second: got %s, want %s", got, vectorV1)
	}
}

// The official library verifies what Sign makes, for each of the secrets in a rotation.
func TestTheLibraryVerifiesEverySecret(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := Secrets{Current: NewSecret(), Old: NewSecret(), OldUntil: now.Add(time.Hour)}
	s.Private = mustPrivate(t, vectorPrivate)
	body := []byte(`{"type":"proposal.voted","timestamp":"2026-03-01T09:30:00.000000Z","data":{"title":"é. ."}}`)
	header := http.Header{}
	header.Set("webhook-id", "evt-1")
	header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	header.Set("webhook-signature", s.Sign("evt-1", now, body))
	for _, c := range []struct {
		what   string
		secret []byte
		body   []byte
		ok     bool
	}{
		{"the current secret", s.Current, body, true},
		{"the old secret", s.Old, body, true},
		{"another secret", NewSecret(), body, false},
		{"a changed body", s.Current, append([]byte(" "), body...), false},
	} {
		w, err := standard.NewWebhook(FormatSecret(c.secret))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Verify(c.body, header); (err == nil) != c.ok {
			t.Errorf("%s: error = %v, want accepted: %v", c.what, err, c.ok)
		}
	}
}

func TestKeysAreWrittenAndRead(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	if len(secret) != 32 || bytes.Equal(secret, NewSecret()) {
		t.Errorf("a secret has %d bytes, want 32 random ones", len(secret))
	}
	if got := mustSecret(t, FormatSecret(secret)); !bytes.Equal(got, secret) {
		t.Errorf("read %x, want %x", got, secret)
	}
	private := mustPrivate(t, vectorPrivate)
	if got := FormatPrivateKey(private); got != vectorPrivate {
		t.Errorf("private key = %s, want %s", got, vectorPrivate)
	}
	if got := FormatPublicKey(private.Public().(ed25519.PublicKey)); got != vectorPublic {
		t.Errorf("public key = %s, want %s", got, vectorPublic)
	}
}

func TestBadSecretsAreRejected(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, n)) }
	for _, c := range []struct{ what, secret, want string }{
		{"24 bytes", "whsec_" + of(24), ""},
		{"64 bytes", "whsec_" + of(64), ""},
		{"23 bytes", "whsec_" + of(23), "24 to 64 bytes"},
		{"65 bytes", "whsec_" + of(65), "24 to 64 bytes"},
		{"empty", "", "whsec_"},
		{"no prefix", of(32), "whsec_"},
		{"another prefix", "whsk_" + of(32), "whsec_"},
		{"not base64", "whsec_" + of(24) + "!", "base64"},
		{"base64 for URLs", "whsec_" + strings.Repeat("-_", 16), "base64"},
		{"no padding", "whsec_" + strings.TrimRight(of(32), "="), "base64"},
	} {
		_, err := ParseSecret(c.secret)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want %q", c.what, err, c.want)
		}
		if err != nil && len(c.secret) > 20 && strings.Contains(err.Error(), c.secret[6:]) {
			t.Errorf("%s: the error repeats the secret: %v", c.what, err)
		}
	}
	for _, bad := range []string{"", vectorPublic, "whsk_" + of(32), "whsk_" + of(64), vectorPrivate + "=", vectorSecret} {
		if _, err := ParsePrivateKey(bad); err == nil {
			t.Errorf("private key %q is accepted", bad)
		}
	}
}
