//go:build sdkcheck

package sdkcheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each client is generated from the document that the server serves, compiled, and used: it
// submits three proposals, lists them by two, and fetches the second page, once by its number and
// once by the cursor.
const checks = 4

// used fails unless the client printed that each of the checks was made.
func used(t *testing.T, said string) {
	t.Helper()
	if n := strings.Count(said, "ok "); n != checks {
		t.Errorf("%d checks were made, want %d:\n%s", n, checks, said)
	}
}

// stage is a server with the credentials for a client, as its environment, and the document that
// it serves.
func stage(t *testing.T) (env []string, document string) {
	t.Helper()
	s := serve(t, []string{"--data", t.TempDir()})
	s.cli(t, "user", "create", "ada", "--org", "main")
	key := s.newKey(t, "user:ada", "svc:tasks:read", "svc:tasks:write")
	return []string{"PARLEY_URL=" + s.base, "PARLEY_KEY=" + key}, s.document(t, t.TempDir())
}

const oapiCodegen = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.1"

func TestOapiCodegen(t *testing.T) {
	env, document := stage(t)
	dir := fresh(t, "oapi-codegen")
	if err := os.Mkdir(filepath.Join(dir, "client"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, "go", "run", oapiCodegen, "-generate", "types,client", "-package", "client", "-o", "client/client.go",
		document)
	run(t, dir, nil, "go", "vet", "./...")
	used(t, run(t, dir, env, "go", "run", "."))
}

func TestOpenAPIGeneratorGo(t *testing.T) {
	env, document := stage(t)
	dir := fresh(t, "generator-go")
	generate(t, document, "go", filepath.Join(dir, "client"), "packageName=client,withGoMod=false")
	run(t, dir, nil, "go", "vet", "./...")
	used(t, run(t, dir, env, "go", "run", "."))
}

func TestOpenAPIGeneratorPython(t *testing.T) {
	env, document := stage(t)
	dir := fresh(t, "generator-python")
	generate(t, document, "python", dir, "packageName=parley_client")
	used(t, run(t, dir, env, python(t, "python"), "main.py"))
}

func TestOpenAPIGeneratorJava(t *testing.T) {
	env, document := stage(t)
	dir := fresh(t, "generator-java")
	generate(t, document, "java", filepath.Join(dir, "client"),
		"library=native,invokerPackage=dev.parley,apiPackage=dev.parley.api,modelPackage=dev.parley.model,hideGenerationTimestamp=true")
	run(t, dir, nil, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(dir, "lib"))
	sources := []string{"-d", "classes", "-cp", "lib/*", "Main.java"}
	err := filepath.WalkDir(filepath.Join(dir, "client", "src", "main", "java"),
		func(path string, _ os.DirEntry, err error) error {
			if strings.HasSuffix(path, ".java") {
				sources = append(sources, path)
			}
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, "javac", sources...)
	used(t, run(t, dir, env, "java", "-cp", "classes"+string(os.PathListSeparator)+"lib/*", "Main"))
}

func TestOpenAPIGeneratorTypeScript(t *testing.T) {
	env, document := stage(t)
	dir := filepath.Join(node(t), "fetch")
	if err := os.CopyFS(dir, os.DirFS("clients/generator-typescript")); err != nil {
		t.Fatal(err)
	}
	generate(t, document, "typescript-fetch", filepath.Join(dir, "client"), "supportsES6=true,importFileExtension=.js")
	run(t, dir, nil, tool(t, "tsc"), "-p", ".")
	used(t, run(t, dir, env, "node", "out/main.js"))
}

func TestOpenAPIPythonClient(t *testing.T) {
	env, document := stage(t)
	dir := fresh(t, "python-client")
	path := "PATH=" + filepath.Dir(python(t, "ruff")) + string(os.PathListSeparator) + os.Getenv("PATH")
	run(t, dir, []string{path}, python(t, "openapi-python-client"), "generate", "--path", document, "--meta", "none",
		"--output-path", filepath.Join(dir, "parley_api"), "--fail-on-warning")
	used(t, run(t, dir, env, python(t, "python"), "main.py"))
}

func TestOpenAPITypeScript(t *testing.T) {
	env, document := stage(t)
	dir := filepath.Join(node(t), "types")
	if err := os.CopyFS(dir, os.DirFS("clients/typescript")); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, tool(t, "openapi-typescript"), document, "-o", "api.ts")
	run(t, dir, nil, tool(t, "tsc"), "-p", ".")
	used(t, run(t, dir, env, "node", "out/main.js"))
}

var redoclyFinding = regexp.MustCompile(`(?m)^\s+\d+:\d+\s+(warning|error)`)

func TestLintersReportNothing(t *testing.T) {
	_, document := stage(t)
	dir := filepath.Dir(document)
	said := run(t, dir, nil, tool(t, "redocly"), "lint", "--extends", "recommended", "--format", "stylish", document)
	if redoclyFinding.MatchString(said) {
		t.Errorf("Redocly has findings, want none:\n%s", said)
	}
	copyFile(t, "spectral.yaml", filepath.Join(dir, "spectral.yaml"))
	run(t, dir, nil, tool(t, "spectral"), "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", document)
}
