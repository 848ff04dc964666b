package pgtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// minVersion is the oldest major version that Parley supports.
const minVersion = 14

// places lists where packages install the server's binaries, beside PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // Fedora, RHEL
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on Apple silicon
	"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
	"/opt/homebrew/bin",                  // Homebrew, unversioned formula
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// binaries returns the directory of the newest suitable PostgreSQL.
func binaries() (string, error) {
	best, bestVersion := "", 0
	for _, bin := range candidates() {
		if v := version(bin); v > bestVersion {
			best, bestVersion = bin, v
		}
	}
	switch {
	case best == "":
		return "", fmt.Errorf("pgtest: PostgreSQL's server programs are not installed; run 'make deps', "+
			"or install PostgreSQL %d or newer (apt-get install postgresql, brew install postgresql)", minVersion)
	case bestVersion < minVersion:
		return "", fmt.Errorf("pgtest: the PostgreSQL in %s is version %d; install %d or newer", best, bestVersion,
			minVersion)
	}
	return best, nil
}

func candidates() []string {
	var out []string
	if path, err := exec.LookPath("initdb"); err == nil {
		// PATH may contain a link; the other programs are beside its target.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		out = append(out, filepath.Dir(path))
	}
	for _, pattern := range places {
		found, _ := filepath.Glob(pattern) // the patterns are constant and well formed
		out = append(out, found...)
	}
	return out
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// version returns the major version of the server in bin, 0 if there is none.
func version(bin string) int {
	if _, err := exec.LookPath(filepath.Join(bin, "initdb")); err != nil {
		return 0
	}
	out, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return 0
	}
	v, _ := strconv.Atoi(string(m[1]))
	return v
}
