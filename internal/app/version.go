package app

import (
	"runtime/debug"
	"strings"
)

// version is set by release builds with -ldflags "-X …/internal/app.version=1.2.3".
var version string

// Version returns the version of this build: that of the release, that of the module if it
// was installed with "go install", or else 0.0.0-dev with the revision.
func Version() string {
	if version != "" {
		return strings.TrimPrefix(version, "v")
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "0.0.0-dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return strings.TrimPrefix(v, "v")
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = "+" + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = ".dirty"
			}
		}
	}
	return "0.0.0-dev" + revision + dirty
}
