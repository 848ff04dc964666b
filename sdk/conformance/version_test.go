package conformance

import (
	"os"
	"regexp"
	"testing"
)

// TestVersions checks that the SDKs have the version of the server: the newest one in the changelog,
// which a release tags, or 0.0.0-dev before the first release.
func TestVersions(t *testing.T) {
	t.Parallel()
	server := "0.0.0-dev"
	if m := regexp.MustCompile(`(?m)^## \[(\d[^\]]*)\]`).FindSubmatch(read(t, "../../CHANGELOG.md")); m != nil {
		server = string(m[1])
	}
	for _, sdk := range []struct {
		manifest string
		version  *regexp.Regexp
		want     string
	}{
		{"../python/pyproject.toml", regexp.MustCompile(`(?m)^version = "(.*)"$`), pythonVersion(server)},
		{"../typescript/package.json", regexp.MustCompile(`(?m)^  "version": "(.*)",$`), server},
	} {
		m := sdk.version.FindSubmatch(read(t, sdk.manifest))
		if m == nil || string(m[1]) != sdk.want {
			t.Errorf("%s has the version %q, want %s", sdk.manifest, m, sdk.want)
		}
	}
}

// TestPythonVersion checks the spelling of versions in Python's packages.
func TestPythonVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.2.3": "1.2.3", "0.0.0-dev": "0.0.0.dev0", "1.2.3-alpha.1": "1.2.3a1", "1.2.3-beta.2": "1.2.3b2",
		"1.2.3-rc.4": "1.2.3rc4",
	} {
		if got := pythonVersion(version); got != want {
			t.Errorf("pythonVersion(%q) = %q, want %q", version, got, want)
		}
	}
}

var preRelease = regexp.MustCompile(`-(alpha|beta|rc)\.(\d+)$`)

// pythonVersion spells a semantic version as PEP 440 does.
func pythonVersion(version string) string {
	version = regexp.MustCompile(`-dev$`).ReplaceAllString(version, ".dev0")
	return preRelease.ReplaceAllStringFunc(version, func(s string) string {
		m := preRelease.FindStringSubmatch(s)
		return map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[1]] + m[2]
	})
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
