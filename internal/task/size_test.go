package task

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestTextSizeIsThatOfTheJSONString compares with the encoder, without the escapes for HTML.
func TestTextSizeIsThatOfTheJSONString(t *testing.T) {
	t.Parallel()
	alphabet := []string{"a", "é", "世", "\U0001F98A", `"`, `\`, "\n", "\t", "\r", "\x01", "\x1f", " ", "!", "]", "~", "#"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s := ""
		for range random.IntN(40) {
			// Mostly plain letters, so that runs of eight are common.
			if random.IntN(4) > 0 {
				s += "a"
			} else {
				s += alphabet[random.IntN(len(alphabet))]
			}
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got, want := textSize(s), int64(b.Len()-len("\"\"\n")); got != want {
			t.Fatalf("%q takes %d bytes; want %d", s, got, want)
		}
	}
}
