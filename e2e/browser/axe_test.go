package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"
)

// axeScript is axe-core, installed from the lock file in axe.
var axeScript = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", fmt.Errorf("npm is not installed, and axe-core comes by it: make deps")
	}
	dir := filepath.Join(scratch, "axe")
	if err := os.CopyFS(dir, os.DirFS("axe")); err != nil {
		return "", err
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci in axe: %w\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(b), err
})

// axe runs axe-core on the page and returns its findings. With rules it runs those only.
func (w *tab) axe(rules ...string) []string {
	w.t.Helper()
	script, err := axeScript()
	if err != nil {
		w.t.Fatal(err)
	}
	if !js[bool](w, "!!window.axe") {
		js[int](w, script+"\n;0")
	}
	options := object{"resultTypes": []string{"violations"}, "rules": object{"target-size": object{"enabled": true}}}
	if len(rules) > 0 {
		options["runOnly"] = rules
		delete(options, "rules")
	}
	given, err := json.Marshal(options)
	if err != nil {
		w.t.Fatal(err)
	}
	found, err := evaluate[[]string](
		w,
		`axe.run(document, `+string(given)+`).then(r => r.violations.flatMap(v => v.nodes.slice(0, 5).map(
		n => v.id + ' (' + v.help + '): ' + n.target.join(' ') + ' ' + n.html.slice(0, 200) + ' ' +
			(n.failureSummary || '').replace(/\s+/g, ' ').slice(0, 300))))`,
		chromedp.EvalAwaitPromise,
	)
	if err != nil {
		w.t.Fatal("axe-core: ", err)
	}
	return found
}

// mustBeAccessible fails for every finding of axe-core.
func (w *tab) mustBeAccessible(state string, rules ...string) {
	w.t.Helper()
	if found := w.axe(rules...); len(found) > 0 {
		w.t.Errorf("axe-core on %s, %s: got %d findings, want none:\n  %s", w.path(), state, len(found),
			strings.Join(found, "\n  "))
	}
}
