package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/parley-dev/parley/internal/servertest"
)

// patience bounds every wait; all of them end early when their condition holds.
const patience = 2 * time.Minute

var (
	program string // the binary under test
	scratch string // removed at the end
)

func TestMain(m *testing.M) {
	// Seeds send many requests at a time to one server.
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 16
	os.Exit(servertest.Main(servertest.Parley, func(dir string) int {
		program, scratch = filepath.Join(dir, "parley"), dir
		defer end()
		return m.Run()
	}))
}

// ending holds what is stopped after all tests.
var ending struct {
	sync.Mutex
	list []func()
}

func atEnd(stop func()) {
	ending.Lock()
	defer ending.Unlock()
	ending.list = append(ending.list, stop)
}

func end() {
	ending.Lock()
	defer ending.Unlock()
	for _, stop := range ending.list {
		stop()
	}
}

// chromium is the one browser that all tests share; each tab has its own context in it.
var chromium = sync.OnceValues(startChromium)

func startChromium() (context.Context, error) {
	path, err := findChromium()
	if err != nil {
		return nil, err
	}
	flags := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(scratch, "profile")),
		chromedp.NoFirstRun, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
	}
	for _, on := range []string{
		"headless", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
		"disable-default-apps", "disable-extensions", "no-default-browser-check", "mute-audio", "hide-scrollbars",
		"disable-dev-shm-usage", "disable-background-timer-throttling", "disable-backgrounding-occluded-windows",
		"disable-renderer-backgrounding",
	} {
		flags = append(flags, chromedp.Flag(on, true))
	}
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, quit := chromedp.NewContext(allocated)
	atEnd(func() { quit(); cancel() })
	return ctx, chromedp.Do(ctx)
}

func findChromium() (string, error) {
	if path := os.Getenv("PARLEY_CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{
		"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf(
		"no Chromium is installed, and the tests of the dashboard need one: make deps, or name it in PARLEY_CHROMIUM",
	)
}

// turns bounds how many tests use the browser at a time.
var turns = make(chan struct{}, 2)

var errNothing = errors.New("nothing was noticed")

// begin lets a test run beside others, and waits for its turn.
func begin(t *testing.T) {
	t.Helper()
	t.Parallel()
	turns <- struct{}{}
	t.Cleanup(func() { <-turns })
}

// eventually waits until f returns nil, and returns its last error otherwise.
func eventually(f func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(15 * time.Millisecond)
	}
}
