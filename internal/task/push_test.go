package task

import (
	"strings"
	"testing"
)

func TestThePortOfAPushURL(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://a.example/": true, "https://a.example:443/": true, "https://a.example:65535/": true,
		"https://a.example:0/": false, "https://a.example:65536/": false, "https://[::1]:99999999999999999999/": false,
	} {
		p := PushConfig{ID: "p-1", URL: url}
		f := p.Check()
		refused := len(f) == 1 && strings.Contains(f[0].Message, "port from 1 to 65535")
		if refused == ok || ok && len(f) > 0 {
			t.Errorf("%s: errors = %v, want it accepted: %t", url, f, ok)
		}
	}
}
