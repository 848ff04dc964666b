package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

// files returns the files below deploy and .github that match.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found
}

// documents parses a file with one or more YAML documents.
func documents(t *testing.T, name string) (out []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc map[string]any
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, doc)
	}
}

// TestManifestsFitKubernetes checks the manifests against the schemas of Kubernetes.
func TestManifestsFitKubernetes(t *testing.T) {
	t.Parallel()
	checker := filepath.Join(venv(t), "bin", "kubernetes-validate")
	validate := func(names ...string) ([]byte, error) {
		return exec.Command(checker, append([]string{"--strict"}, names...)...).CombinedOutput()
	}
	manifests := slices.DeleteFunc(files(t, "deploy/kubernetes/*/*.yaml"), func(name string) bool {
		return filepath.Base(name) == "kustomization.yaml" // no object of the cluster
	})
	if out, err := validate(manifests...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("../deploy/kubernetes/nodes/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, bytes.Replace(text, []byte("readinessProbe:"), []byte("readynessProbe:"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := validate(wrong); err == nil {
		t.Errorf("a misspelt manifest was accepted: %s", out)
	}
}

// TestKustomizationsNameEveryFile keeps manifests from being forgotten.
func TestKustomizationsNameEveryFile(t *testing.T) {
	t.Parallel()
	for _, name := range files(t, "deploy/kubernetes/*/kustomization.yaml") {
		doc := documents(t, name)[0]
		want := []any{}
		for _, f := range files(t, filepath.Join("deploy/kubernetes", filepath.Base(filepath.Dir(name)), "*.yaml")) {
			if f != name {
				want = append(want, filepath.Base(f))
			}
		}
		got, _ := doc["resources"].([]any)
		if len(got) != len(want) || slices.ContainsFunc(want, func(w any) bool { return !slices.Contains(got, w) }) {
			t.Errorf("%s names %v, want %v", name, got, want)
		}
	}
}

// TestManifestsSetKnownVariables compares the variables with the settings of the server.
func TestManifestsSetKnownVariables(t *testing.T) {
	t.Parallel()
	r := newTestRelease("")
	help, err := r.run(r.goEnv(platform{runtime.GOOS, runtime.GOARCH}), "go",
		append(r.goBuild("run"), "./cmd/parley", "serve", "--help")...)
	if err != nil {
		t.Fatal(err)
	}
	settings := regexp.MustCompile(`PARLEY_[A-Z_]+`)
	known := append(settings.FindAllString(string(help), -1), "PARLEY_VERSION") // of compose.yaml
	for _, name := range slices.Concat(files(t, "deploy/*.yaml"), files(t, "deploy/kubernetes/*/*.yaml"), files(t, "deploy/systemd/*")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range settings.FindAllString(string(text), -1) {
			if !slices.Contains(known, v) {
				t.Errorf("%s sets %s, which the server does not know", name, v)
			}
		}
	}
}

func TestComposeFileLoads(t *testing.T) {
	t.Parallel()
	load := func(env types.Mapping) (*types.Project, error) {
		return loader.LoadWithContext(context.Background(), types.ConfigDetails{
			WorkingDir: "../deploy", ConfigFiles: types.ToConfigFiles([]string{"../deploy/compose.yaml"}), Environment: env,
		})
	}
	p, err := load(types.Mapping{"POSTGRES_PASSWORD": "secret"})
	if err != nil {
		t.Fatal(err)
	}
	parley := p.Services["parley"]
	if got := parley.Environment["PARLEY_DATABASE"]; got == nil || *got != "postgres://parley:secret@postgres/parley" {
		t.Errorf("PARLEY_DATABASE = %v", got)
	}
	if d := parley.DependsOn["postgres"]; d.Condition != types.ServiceConditionHealthy || !parley.ReadOnly {
		t.Errorf("parley = %+v", parley)
	}
	for name, s := range p.Services {
		if s.HealthCheck == nil {
			t.Errorf("%s has no health check", name)
		}
		for _, v := range s.Volumes {
			if _, ok := p.Volumes[v.Source]; !ok {
				t.Errorf("%s uses the volume %s, which has no name", name, v.Source)
			}
		}
	}
	if _, err := load(types.Mapping{}); err == nil || !strings.Contains(err.Error(), "POSTGRES_PASSWORD") {
		t.Errorf("without a password: %v, want an error", err)
	}
}

// TestWorkflowsArePinned: an action is code of others, and a tag can be moved to other code.
func TestWorkflowsArePinned(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
	var commands []string
	for _, name := range files(t, ".github/workflows/*.yaml") {
		jobs, _ := documents(t, name)[0]["jobs"].(map[string]any)
		for job, body := range jobs {
			steps, _ := body.(map[string]any)["steps"].([]any)
			if len(steps) == 0 {
				t.Errorf("%s: the job %s has no steps", name, job)
			}
			for _, s := range steps {
				step, _ := s.(map[string]any)
				if uses, ok := step["uses"].(string); ok && !pinned.MatchString(uses) {
					t.Errorf("%s uses %s; name a commit", name, uses)
				}
				run, _ := step["run"].(string)
				commands = append(commands, run)
			}
		}
	}
	for _, want := range []string{"bash .ci/run", "make release"} {
		if !slices.ContainsFunc(commands, func(c string) bool { return strings.HasSuffix(c, want) }) {
			t.Errorf("no workflow runs %q", want)
		}
	}
}
