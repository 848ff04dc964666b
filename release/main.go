// Command release builds what a release of Parley consists of, into dist/:
//
//	archives of the static binary with completions and manual pages, for each platform
//	a bill of materials (CycloneDX) of each binary
//	Debian packages, for Linux
//	a container image for amd64 and arm64, as an OCI archive and for "docker load"
//	SHA256SUMS
//
// Two runs on the same commit with the same version of Go give the same bytes. It is a module of its
// own, so that the server does not get its dependencies. Run it with "make release".
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", "..", "folder of the repository")
	out := flag.String("out", "../dist", "folder for the result; it is emptied first")
	version := flag.String("version", "", "version; that of git describe if not given")
	platforms := flag.String("platforms", strings.Join(allPlatforms, ","), "platforms to build, as OS/ARCH")
	flag.Parse()
	began := time.Now()
	err := run(*root, *out, *version, strings.Split(*platforms, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	fmt.Printf("done in %.0f s\n", time.Since(began).Seconds())
}

func run(root, out, version string, platforms []string) error {
	r, err := newRelease(root, out, version, platforms)
	if err != nil {
		return err
	}
	r.say = func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	return r.make()
}

// release is one release in the making.
type release struct {
	root      string // of the repository
	out       string
	version   string // without v
	when      time.Time
	platforms []platform
	cache     string // GOCACHE; that of the caller if empty
	// quick is for tests: the program is compiled as in all other tests, so that nothing is compiled twice,
	// and linked statically. Files are compressed less.
	quick bool
	say   func(format string, args ...any)
}

func newRelease(root, out, version string, platforms []string) (*release, error) {
	r := &release{version: strings.TrimPrefix(version, "v"), say: func(string, ...any) {}}
	var err error
	if r.root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if r.version == "" {
		if r.version, err = gitVersion(r.root); err != nil {
			return nil, err
		}
	}
	if r.when, err = sourceDate(r.root); err != nil {
		return nil, err
	}
	for _, name := range platforms {
		p, err := parsePlatform(name)
		if err != nil {
			return nil, err
		}
		r.platforms = append(r.platforms, p)
	}
	return r, nil
}

// make builds everything.
func (r *release) make() (err error) {
	r.say("parley %s, as of %s, in %s", r.version, r.when.Format(time.RFC3339), r.out)
	work, err := os.MkdirTemp("", "parley-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	r.say("completions and manual pages")
	x, err := r.extras(work)
	if err != nil {
		return err
	}
	var images []imagePart
	for _, p := range r.platforms {
		binary, err := r.build(work, p)
		if err != nil {
			return err
		}
		if err := r.archive(p, binary, x); err != nil {
			return fmt.Errorf("archive for %s: %w", p, err)
		}
		if err := r.writeSBOM(p, binary); err != nil {
			return fmt.Errorf("bill of materials for %s: %w", p, err)
		}
		if p.os != "linux" {
			continue
		}
		if err := r.debianPackage(work, p, binary, x); err != nil {
			return fmt.Errorf("Debian package for %s: %w", p, err)
		}
		images = append(images, imagePart{p, binary})
	}
	if err := r.images(work, images); err != nil {
		return fmt.Errorf("container image: %w", err)
	}
	return r.sums()
}

// path returns the path of a result, such as dist/parley_1.2.3_linux_amd64.tar.gz.
func (r *release) path(suffix string) string {
	return filepath.Join(r.out, "parley_"+strings.ReplaceAll(r.version, "+", "-")+"_"+suffix)
}
