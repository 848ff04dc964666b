package conformance

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPython(t *testing.T) {
	sdk, err := filepath.Abs("../python")
	if err != nil {
		t.Fatal(err)
	}
	venv := exec.Command("../../scripts/venv", filepath.Join(sdk, "requirements.txt"))
	var stderr bytes.Buffer
	venv.Stderr = &stderr
	out, err := venv.Output()
	if err != nil {
		t.Fatalf("scripts/venv: %v\n%s", err, &stderr)
	}
	dir := strings.TrimSpace(string(out))
	conform(t, program{
		args: []string{filepath.Join(dir, "bin", "python"), filepath.Join(sdk, "tests", "driver.py")},
		env: []string{
			"PYTHONPATH=" + filepath.Join(sdk, "src"),
			// Python keeps its bytecode in the virtual environment, not in the checkout.
			"PYTHONPYCACHEPREFIX=" + filepath.Join(dir, "compiled"),
		},
	})
}
