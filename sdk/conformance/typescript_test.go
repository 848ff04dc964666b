package conformance

import (
	"path/filepath"
	"testing"

	"github.com/parley-dev/parley/internal/nodetest"
)

func TestTypeScript(t *testing.T) {
	dir := filepath.Join(built, "typescript")
	if err := nodetest.Install("../typescript", dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "build"}, {"run", "build:test"}} {
		if err := nodetest.NPM(dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	conform(t, program{args: []string{"node", filepath.Join(dir, "build", "driver.js")}})
}
