package main

import (
	"crypto/md5" // the format of Debian packages has it, against damage only
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// debianVersion orders versions as Debian does: a pre-release is older than its release.
func debianVersion(version string) string {
	version, isDirty := strings.CutSuffix(version, "-dirty")
	version = strings.ReplaceAll(version, "-", "~")
	if isDirty {
		version += "+dirty"
	}
	return version
}

// debianPackage builds the package for a platform from deploy/debian and deploy/systemd.
func (r *release) debianPackage(work string, p platform, binary string, x extras) error {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return errors.New("dpkg-deb is missing; install the package dpkg")
	}
	r.say("Debian package for %s", p)
	files, err := r.debianFiles(binary, x)
	if err != nil {
		return err
	}
	control, err := r.debianControl(p, files)
	if err != nil {
		return err
	}
	stage := filepath.Join(work, "deb-"+p.name())
	if err := r.stage(stage, append(files, control...)); err != nil {
		return err
	}
	out := filepath.Join(r.out, fmt.Sprintf("parley_%s_%s.deb",
		strings.ReplaceAll(debianVersion(r.version), "~", "-"), p.arch)) // some hosts rename files with ~
	compress := []string{"-Zxz", "-z4", "--threads-max=1"}
	if r.quick {
		compress = []string{"-Zgzip", "-z1"}
	}
	_, err = r.run([]string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.when.Unix())}, "dpkg-deb",
		append(compress, "--root-owner-group", "--build", stage, out)...)
	return err
}

// debianFiles returns the contents of the package.
func (r *release) debianFiles(binary string, x extras) ([]file, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	files := []file{
		{"usr/bin/parley", 0o755, program},
		{"usr/share/bash-completion/completions/parley", 0o644, x.completions["bash"]},
		{"usr/share/zsh/vendor-completions/_parley", 0o644, x.completions["zsh"]},
		{"usr/share/fish/vendor_completions.d/parley.fish", 0o644, x.completions["fish"]},
		{"usr/share/doc/parley/changelog.gz", 0o644, gzipped(r.debianChangelog())},
	}
	notices, err := r.notices(binary)
	if err != nil {
		return nil, err
	}
	files = append(files, file{"usr/share/doc/parley/third-party-notices.gz", 0o644, gzipped(notices)})
	for _, page := range x.man {
		files = append(files, file{"usr/share/man/man1/" + page.name + ".gz", 0o644, gzipped(page.body)})
	}
	for _, f := range []struct {
		from, to string
		mode     fs.FileMode
	}{
		{"deploy/systemd/parley.service", "lib/systemd/system/parley.service", 0o644},
		{"deploy/systemd/parley.env", "etc/parley/parley.env", 0o640},
		{"deploy/debian/copyright", "usr/share/doc/parley/copyright", 0o644},
		{"deploy/debian/lintian-overrides", "usr/share/lintian/overrides/parley", 0o644},
		{"README.md", "usr/share/doc/parley/README.md.gz", 0o644},
		{"CHANGELOG.md", "usr/share/doc/parley/NEWS.md.gz", 0o644},
	} {
		body, err := os.ReadFile(filepath.Join(r.root, f.from))
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(f.to, ".gz") {
			body = gzipped(body)
		}
		files = append(files, file{f.to, f.mode, body})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// debianChangelog returns the changelog in Debian's form. It has one entry; the changes are in NEWS.
func (r *release) debianChangelog() []byte {
	return fmt.Appendf(nil, "parley (%s) unstable; urgency=medium\n\n  * Release %s; see NEWS.md.gz for what changed.\n\n"+
		" -- The Parley authors <parley-dev@users.noreply.github.com>  %s\n",
		debianVersion(r.version), r.version, r.when.Format(time.RFC1123Z))
}

// debianControl returns the files that tell dpkg about the package.
func (r *release) debianControl(p platform, files []file) ([]file, error) {
	var out []file
	size := 0
	var sums strings.Builder
	for _, f := range files {
		size += (len(f.body) + 1023) / 1024
		if !strings.HasPrefix(f.name, "etc/") {
			fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.body), f.name)
		}
	}
	out = append(out, file{"DEBIAN/md5sums", 0o644, []byte(sums.String())},
		file{"DEBIAN/conffiles", 0o644, []byte("/etc/parley/parley.env\n")})
	for name, mode := range map[string]fs.FileMode{"control": 0o644, "postinst": 0o755, "prerm": 0o755, "postrm": 0o755} {
		body, err := os.ReadFile(filepath.Join(r.root, "deploy/debian", name))
		if err != nil {
			return nil, err
		}
		if name == "control" {
			body = []byte(strings.NewReplacer("@VERSION@", debianVersion(r.version), "@ARCH@", p.arch,
				"@SIZE@", fmt.Sprint(size)).Replace(string(body)))
		}
		out = append(out, file{"DEBIAN/" + name, mode, body})
	}
	return out, nil
}

// stage writes files below a folder, with the modes and the time of the release.
func (r *release) stage(dir string, files []file) error {
	for _, f := range files {
		name := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.body, f.mode.Perm()); err != nil {
			return err
		}
		if err := os.Chmod(name, f.mode.Perm()); err != nil { // whatever the umask is
			return err
		}
	}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if err := os.Chmod(name, 0o755); err != nil {
				return err
			}
		}
		return os.Chtimes(name, r.when, r.when)
	})
}
