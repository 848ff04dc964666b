//go:build sdkcheck

package sdkcheck

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// The tools are installed once, by the first test that needs them.
var (
	pythonOnce, nodeOnce sync.Once
	pythonDir, nodeDir   string
)

// python returns a program of the virtual environment of requirements.txt. The environment is kept
// in the user's cache, under a name that changes with the file.
func python(t *testing.T, name string) string {
	t.Helper()
	pythonOnce.Do(func() {
		list, err := os.ReadFile("requirements.txt")
		if err != nil {
			t.Fatal(err)
		}
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(list)
		dir := filepath.Join(cache, "parley-sdkcheck", hex.EncodeToString(sum[:8]))
		complete := filepath.Join(dir, "complete")
		if _, err := os.Stat(complete); err != nil {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			run(t, ".", nil, "python3", "-m", "venv", dir)
			run(t, ".", nil, filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "-r",
				"requirements.txt")
			if err := os.WriteFile(complete, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		pythonDir = dir
	})
	if pythonDir == "" {
		t.Fatal("the Python packages could not be installed; see the first test that failed")
	}
	return filepath.Join(pythonDir, "bin", name)
}

// node returns the directory with the packages of package.json.
func node(t *testing.T) string {
	t.Helper()
	nodeOnce.Do(func() {
		dir := filepath.Join(work, "node")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"package.json", "package-lock.json"} {
			copyFile(t, name, filepath.Join(dir, name))
		}
		run(t, dir, nil, "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
		nodeDir = dir
	})
	if nodeDir == "" {
		t.Fatal("the packages of npm could not be installed; see the first test that failed")
	}
	return nodeDir
}

// tool returns a program of the npm packages.
func tool(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(node(t), "node_modules", ".bin", name)
}

// generate runs openapi-generator, a Java program in a PyPI package.
func generate(t *testing.T, document, generator, into string, properties string) {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		t.Fatal("java is not installed, and openapi-generator needs it: scripts/deps sdkcheck")
	}
	run(t, work, nil, python(t, "openapi-generator-cli"), "generate", "-i", document, "-g", generator, "-o", into,
		"--additional-properties="+properties, "--global-property=apiTests=false,modelTests=false,apiDocs=false,modelDocs=false")
}

// fresh returns a new directory with a copy of one of the clients.
func fresh(t *testing.T, client string) string {
	t.Helper()
	dir := filepath.Join(work, "clients", client)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("clients", client))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
