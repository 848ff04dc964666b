// Package nodetest installs npm packages for tests that run Node.js programs.
package nodetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// modules is the directory in which npm installs packages.
const modules = "node_modules"

// made are the directories that npm and the builds make.
var made = []string{modules, "dist", "build"}

// Install copies a directory, without what npm and builds have made in it, and installs the
// packages of its lock file in the copy. They are kept in the user's cache under a hash of the
// lock file, so that other tests and checkouts share them.
func Install(from, to string) error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed: run make deps, or apt-get install nodejs npm", program)
		}
	}
	if err := copySources(from, to); err != nil {
		return err
	}
	packages, err := cached(to)
	if err != nil {
		return err
	}
	return os.Symlink(packages, filepath.Join(to, modules))
}

// NPM runs npm in a directory. The error has its output.
func NPM(dir string, args ...string) error {
	cmd := exec.Command("npm", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s in %s: %w\n%s", args[0], dir, err, out)
	}
	return nil
}

// cached returns the installed packages of a directory's lock file.
func cached(dir string) (string, error) {
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "parley", "node")
	target := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256(lock)))
	packages := filepath.Join(target, modules)
	if _, err := os.Stat(packages); err == nil {
		return packages, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := install(dir, fresh); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, target); err != nil {
		if _, other := os.Stat(packages); other != nil { // unless another process was faster
			return "", err
		}
	}
	return packages, nil
}

// install installs the packages of a directory's lock file in another directory.
func install(dir, to string) error {
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		err := copyFile(filepath.Join(dir, name), filepath.Join(to, name))
		if err != nil && (name != ".npmrc" || !errors.Is(err, fs.ErrNotExist)) { // not every package has settings
			return err
		}
	}
	return NPM(to, "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
}

func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(made, name):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		return copyFile(path, filepath.Join(to, name))
	})
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
