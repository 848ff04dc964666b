package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// noticesName is the name of the file with the licences of others in archives.
const noticesName = "THIRD-PARTY-NOTICES"

// licenceFile matches the files of a module that must go with its code.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)

// notices returns the licences of Go and of all modules that a binary contains, as they demand.
func (r *release) notices(binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	dirs, err := r.moduleDirs()
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString("Parley contains Go and the following modules, under these licences.\n")
	if err := addLicences(out, "Go "+strings.TrimPrefix(info.GoVersion, "go"), dirs["std"]); err != nil {
		return nil, err
	}
	for _, dep := range info.Deps { // sorted by path
		if err := addLicences(out, dep.Path+" "+dep.Version, dirs[dep.Path]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// moduleDirs returns the folders of the modules of the program, and that of Go as "std".
func (r *release) moduleDirs() (map[string]string, error) {
	list, err := r.run([]string{"GOFLAGS="}, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return nil, err
	}
	goRoot, err := r.run(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{"std": strings.TrimSpace(string(goRoot))}
	for line := range strings.Lines(string(list)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			dirs[path] = dir
		}
	}
	return dirs, nil
}

// addLicences adds the licences in the folder of a module. A module without one cannot be released.
func addLicences(out *bytes.Buffer, module, dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return fmt.Errorf("the folder of %s: %w", module, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(out, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 78), module, e.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no licence file in %s", module, dir)
	}
	return nil
}
