package browser

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// viewport sets the size of the window, in CSS pixels.
func viewport(width, height int64) option { return metrics(width, height, 1) }

// zoomed sets a window of 1280 × 1024 with the page enlarged to 200 %.
func zoomed(w *tab) error { return metrics(640, 512, 2)(w) }

func metrics(width, height int64, scale float64) option {
	return func(w *tab) error {
		_, err := ask(
			w,
			emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: scale},
		)
		return err
	}
}

// touch sets a touch screen.
func touch(w *tab) error {
	_, err := ask(
		w,
		emulation.SetTouchEmulationEnabled,
		emulation.SetTouchEmulationEnabledParams{Enabled: true, MaxTouchPoints: 5},
	)
	return err
}

// mouse undoes touch.
func mouse(w *tab) error {
	_, err := ask(w, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{})
	return err
}

// media sets the user's preferences: "prefers-color-scheme", "dark", …
func media(pairs ...string) option {
	return func(w *tab) error {
		var features []*emulation.MediaFeature
		for i := 0; i < len(pairs); i += 2 {
			features = append(features, &emulation.MediaFeature{Name: pairs[i], Value: pairs[i+1]})
		}
		_, err := ask(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}
}

func scheme(name string) option { return media("prefers-color-scheme", name) }

// noScripts turns JavaScript off.
func noScripts(w *tab) error {
	w.plain = true
	_, err := ask(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	return err
}

// picture returns a screenshot of the whole page.
func (w *tab) picture() []byte {
	w.t.Helper()
	const lowest, tallest = 900, 8000
	size := call(w, page.GetLayoutMetrics, cdp.Empty{}).CSSContentSize
	if size == nil || size.Width < 1 {
		w.t.Fatal("got a page without a size, want one with a width")
	}
	height := min(max(size.Height, lowest), tallest)
	w.set(viewport(js[int64](w, "innerWidth"), int64(height)))
	return call(w, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: new(true), Clip: &page.Viewport{Width: size.Width, Height: height, Scale: 1},
	}).Data
}
