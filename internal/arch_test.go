// Package internal_test enforces the rules of docs/architecture.md: the imports of each package,
// the length of files, and words that the repository must not contain.
package internal_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/parley-dev/parley/"

// layers are listed from the outside in. A package may import packages of later layers, but not
// of its own layer or an earlier one.
var layers = [][]string{
	{
		"cmd/parley", "scripts/manpages", "scripts/profile", "scripts/testlog", "bench", "e2e", "e2e/cli", "e2e/browser",
		"e2e/corpus", "sdk/conformance/driver",
	},
	{"internal/cli"},
	{"internal/app"},
	{"internal/doctor", "internal/telemetry"},
	{
		"internal/rest", "internal/a2a", "internal/mcp", "internal/web", "internal/authserver", "internal/sso",
		"internal/store", "internal/store/storetest", "internal/config", "internal/clilogin", "internal/demo",
	},
	{"internal/httpx", "internal/wire"},
	{"internal/relay"},
	{"internal/dispatch", "internal/webhook"},
	{"internal/stream", "internal/delivery"},
	{"internal/outbound"},
	{
		"internal/proposal", "internal/followup", "internal/friction", "internal/task", "internal/agent", "internal/oauth",
		"internal/account", "internal/event",
	},
	{"internal/identity", "internal/budget"},
	{
		"internal/idempotency", "internal/cursor", "internal/limit", "internal/cache", "internal/backup", "internal/chain",
		"internal/secret", "internal/policy",
	},
	{"internal/metadata"},
	{"internal/errs", "internal/text", "internal/trace", "internal/words", "internal/textindex"},
	{"sdk/worker"}, // public: users import these packages, so they import no other package of the module
	{"sdk/client"},
}

// domain packages contain the rules. They import only the standard library and later layers, and
// neither net/http nor database/sql.
var domain = []string{
	"internal/dispatch", "internal/stream",
	"internal/proposal", "internal/followup", "internal/friction", "internal/task", "internal/agent", "internal/oauth",
	"internal/account", "internal/event",
	"internal/identity", "internal/idempotency", "internal/cursor", "internal/cache", "internal/budget", "internal/errs",
	"internal/text",
}

var namedMember = regexp.MustCompile(`json:"[^",-]`)

var notInDomain = []string{"net/http", "database/sql"}

// Only the store may import databases. pgtest creates databases for tests, and bench compares the
// store with the bare driver.
var (
	databases     = []string{"database/sql", "github.com/jackc/pgx", "modernc.org/sqlite", "zombiezen.com/go/sqlite"}
	mayUseDrivers = []string{"internal/store", "internal/store/storetest", "internal/pgtest", "bench"}
)

// exceptions are imports that are allowed against the order of the layers.
var exceptions = map[string][]string{
	"internal/store/storetest": {"internal/store", "internal/pgtest"}, // the suite that every engine must pass
	"bench":                    {"internal/pgtest", "internal/servertest"},
}

// apart lists imports that are forbidden although the layers allow them.
var apart = map[string][]string{
	"internal/delivery": { // it delivers any kind of event
		"internal/task", "internal/agent", "internal/proposal", "internal/followup", "internal/friction", "internal/oauth",
		"internal/account",
	},
}

// tools are outside the layers. Only tests and benchmarks import them.
var tools = []string{
	"internal/apptest", "internal/errs/errstest", "internal/idptest", "internal/nodetest", "internal/orgtest", "internal/pgtest",
	"internal/servertest",
}

const maxLines = 700

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		for _, path := range f.imports() {
			if why := refuse(f.pkg, path); why != "" {
				t.Errorf("%s imports %s: %s", f.path, path, why)
			}
		}
	}
}

// A tag with a member name ties a domain type to one wire format; each transport defines its own
// types. Options without a name are for values that the store keeps as JSON.
func TestDomainTypesNameNoWireMembers(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() || !slices.Contains(domain, f.pkg) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil && namedMember.MatchString(field.Tag.Value) {
				t.Errorf("%s: a domain type has the tag %s", f.path, field.Tag.Value)
			}
			return true
		})
	}
}

// wireWords match spellings of one transport: JSON pointers, and names of members and headers.
var wireWords = regexp.MustCompile(`^"/[A-Za-z_]|ETag|Idempotency-Key|[a-z]Token\b|[a-z]Config\b`)

// Errors of the domain name fields by an errs.Path; transports spell it.
func TestDomainSpeaksNoWire(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() || !slices.Contains(domain, f.pkg) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && wireWords.MatchString(lit.Value) {
				t.Errorf("%s: a domain package contains %s, a spelling of a transport", f.path, lit.Value)
			}
			return true
		})
	}
}

// A nolint comment for a linter that does not run has no effect. nolintlint reports unneeded
// comments only for linters that run.
func TestExceptionsAreForLintersThatRun(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile(filepath.Join("..", ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	exception := regexp.MustCompile(`//` + `nolint(?::([a-z0-9,]+))?`)
	for _, f := range goFiles(t) {
		for _, m := range exception.FindAllSubmatch(f.src, -1) {
			for name := range strings.SplitSeq(string(m[1]), ",") {
				if name == "" || !bytes.Contains(config, []byte("    - "+name+" ")) {
					t.Errorf("%s: %s names no linter of .golangci.yml", f.path, m[0])
				}
			}
		}
	}
}

// Transports configure how httpx treats their paths, so its code must not contain any.
func TestHTTPXNamesNoPath(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() || f.pkg != "internal/httpx" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && namedPath.MatchString(lit.Value) {
				t.Errorf("%s names the path %s", f.path, lit.Value)
			}
			return true
		})
	}
}

var namedPath = regexp.MustCompile("^[\"`](?:[A-Z]+ )?/[a-z.]")

// TestImportRulesRefuse tests the import rules themselves.
func TestImportRulesRefuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"internal/rest", module + "internal/proposal", true},
		{"internal/app", module + "internal/store", true},
		{"internal/store/storetest", module + "internal/pgtest", true},
		{"internal/store", "github.com/jackc/pgx/v5", true},
		{"internal/rest", module + "internal/store", false},
		{"internal/rest", module + "internal/web", false},
		{"internal/proposal", module + "internal/followup", false},
		{"internal/store", module + "internal/dispatch", true},
		{"internal/dispatch", module + "internal/stream", true},
		{"internal/dispatch", module + "internal/delivery", true},
		{"internal/stream", module + "internal/task", true},
		{"internal/stream", module + "internal/dispatch", false},
		{"internal/stream", module + "internal/delivery", false},
		{"internal/delivery", module + "internal/stream", false},
		{"internal/delivery", module + "internal/task", false},
		{"internal/task", module + "internal/dispatch", false},
		{"internal/task", module + "internal/stream", false},
		{"internal/dispatch", module + "internal/store", false},
		{"internal/dispatch", "net/http", false},
		{"internal/identity", module + "internal/proposal", false},
		{"internal/proposal", "net/http", false},
		{"internal/proposal", "github.com/google/uuid", false},
		{"internal/app", "database/sql", false},
		{"internal/app", module + "internal/pgtest", false},
		{"internal/util", "fmt", false},
		{"examples/go", module + "sdk/worker", true},
		{"examples/go", module + "internal/task", false},
		{"sdk/worker", module + "internal/errs", false},
		{"sdk/worker", module + "sdk/client", true},
		{"sdk/client", module + "sdk/worker", false},
		{"sdk/client", module + "internal/errs", false},
	} {
		if why := refuse(c.from, c.to); (why == "") != c.ok {
			t.Errorf("refuse(%q, %q) = %q, want allowed: %v", c.from, c.to, why, c.ok)
		}
	}
}

// refuse returns the reason why pkg may not import path, or "".
func refuse(pkg, path string) string {
	if slices.Contains(tools, pkg) {
		return ""
	}
	if strings.HasPrefix(pkg, "examples/") {
		if strings.HasPrefix(path, module) && !strings.HasPrefix(path, module+"sdk/") {
			return "examples import only the public packages"
		}
		return ""
	}
	from := layer(pkg)
	if from < 0 {
		return "the package is in no layer; add it to the table in internal/arch_test.go"
	}
	for _, db := range databases {
		if (path == db || strings.HasPrefix(path, db+"/")) && !slices.Contains(mayUseDrivers, pkg) {
			return "only internal/store may use a database"
		}
	}
	target, ours := strings.CutPrefix(path, module)
	if ours {
		if slices.Contains(apart[pkg], target) {
			return "this import is forbidden; see apart in internal/arch_test.go"
		}
		to := layer(target)
		if slices.Contains(exceptions[pkg], target) || to > from {
			return ""
		}
		return "a package may import only later layers"
	}
	if slices.Contains(domain, pkg) {
		if slices.Contains(notInDomain, path) {
			return "a domain package imports neither a transport nor a database"
		}
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			return "a domain package uses the standard library only"
		}
	}
	return ""
}

func layer(pkg string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, pkg) })
}

func TestFilesStayReadable(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		lines := bytes.Count(f.src, []byte("\n"))
		if lines > maxLines && !ast.IsGenerated(f.syntax) {
			t.Errorf("%s has %d lines; split it (at most %d)", f.path, lines, maxLines)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, f := range goFiles(t) {
		if !f.isTest() {
			documented[f.pkg] = documented[f.pkg] || len(f.syntax.Doc.Text()) > len("Package x does y.")
		}
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("%s has no package doc comment", pkg)
		}
	}
}

// Paths of one machine are useless on others, and slip easily into scripts and docs.
func TestNothingNamesALocalPath(t *testing.T) {
	t.Parallel()
	// Concatenated, so that this file does not contain them.
	forbidden := []string{"/" + "work/", "/" + "root/"}
	walk(t, func(path string) {
		if filepath.Base(path) == "go.sum" {
			return
		}
		b, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Error(err)
			return
		}
		for _, word := range forbidden {
			if i := bytes.Index(b, []byte(word)); i >= 0 {
				t.Errorf("%s:%d mentions %s", path, 1+bytes.Count(b[:i], []byte("\n")), word)
			}
		}
	})
}

type goFile struct {
	path, pkg string // relative to the repository
	src       []byte
	syntax    *ast.File
}

func (f *goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f *goFile) imports() []string {
	out := make([]string, len(f.syntax.Imports))
	for i, spec := range f.syntax.Imports {
		out[i], _ = strconv.Unquote(spec.Path.Value) // the parser has checked it
	}
	return out
}

// goFiles are parsed once for all tests.
func goFiles(t *testing.T) []*goFile {
	t.Helper()
	parsed.Do(func() { parsed.files = parseGoFiles(t) })
	if len(parsed.files) == 0 {
		t.Fatal("found no Go files: the test looks in the wrong place")
	}
	return parsed.files
}

var parsed struct {
	sync.Once
	files []*goFile
}

func parseGoFiles(t *testing.T) []*goFile {
	t.Helper()
	var out []*goFile
	walk(t, func(path string) {
		if filepath.Ext(path) != ".go" || nested(path) {
			return
		}
		f := &goFile{path: path, pkg: filepath.ToSlash(filepath.Dir(path))}
		var err error
		if f.src, err = os.ReadFile(filepath.Join("..", path)); err != nil {
			t.Fatal(err)
		}
		if f.syntax, err = parser.ParseFile(token.NewFileSet(), path, f.src, parser.ParseComments); err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	})
	return out
}

// nested reports whether a file belongs to a module of its own: a program that uses a
// generated client.
func nested(path string) bool {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join("..", dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// notOurs are the directories that programs make.
var notOurs = []string{".git", "__pycache__", "bin", "build", "dist", "node_modules", "parley-data"}

// walk calls visit for each file of the repository; what .gitignore keeps out is skipped.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("walk %s: %w", path, err)
		case d.IsDir() && slices.Contains(notOurs, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular() || path == "parley" || path == ".git" || // a file in a worktree
			slices.Contains([]string{".test", ".prof", ".out"}, filepath.Ext(path)):
			return nil
		}
		visit(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
