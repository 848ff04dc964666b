package app

import (
	"runtime/debug"
	"strings"
)

// version is set by release builds with -ldflags "-X …/internal/app.version=1.2.3".
var version string

// Version is the version of this build: the release's, the module's when it was
// installed by version, else 0.0.0-dev with the revision.
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
