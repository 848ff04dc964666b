package text

import "testing"

func TestValidPort(t *testing.T) {
	t.Parallel()
	for port, want := range map[string]bool{
		"": true, "1": true, "443": true, "65535": true,
		"0": false, "65536": false, "-1": false, "+1": false, "x": false, "99999999999999999999": false,
	} {
		if got := ValidPort(port); got != want {
			t.Errorf("ValidPort(%q) = %v, want %v", port, got, want)
		}
	}
}

// An origin is shown to admins and in logs, so it must not contain the secret parts of a URL.
func TestOriginHasNoSecrets(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://Hooks.Example/services/secret?token=secret": "https://hooks.example",
		"HTTP://user:secret@[::1]:8080/":                     "http://[::1]:8080",
		"https://h.example:99999/":                           "https://h.example:99999",
		"https://h.example/%zz":                              "",
		"":                                                   "://",
	} {
		if got := Origin(raw); got != want {
			t.Errorf("Origin(%q) = %q, want %q", raw, got, want)
		}
	}
}
