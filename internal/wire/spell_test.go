package wire

import (
	"testing"

	"github.com/parley-dev/parley/internal/errs"
)

func TestSpell(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]errs.Path{
		"id":                              errs.At("id"),
		"message.messageId":               errs.At("message", "id"),
		"artifacts[0].artifact_id":        errs.At("artifacts", 0, "id"),
		"artifacts[0].parts[1].mediaType": errs.At("artifacts", 0, "parts", 1, "media_type"),
		"message.referenceTaskIds[2]":     errs.At("message", "references", 2),
	} {
		if got := Spell(p).String(); got != want {
			t.Errorf("%v: got %q, want %q", p, got, want)
		}
	}
}
