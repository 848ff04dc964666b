package browser

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// viewport sets the size of the window, in CSS pixels.
func viewport(width, height int64) option {
	return func(*tab) chromedp.Action { return emulation.SetDeviceMetricsOverride(width, height, 1, false) }
}

// zoomed is a window of 1280 × 1024 whose page is enlarged to 200 %.
func zoomed(*tab) chromedp.Action { return emulation.SetDeviceMetricsOverride(640, 512, 2, false) }

// touch is a screen for fingers.
func touch(*tab) chromedp.Action {
	return emulation.SetTouchEmulationEnabled(true).WithMaxTouchPoints(5)
}

// media sets what the person has told their system: "prefers-color-scheme", "dark", …
func media(pairs ...string) option {
	return func(*tab) chromedp.Action {
		var features []*emulation.MediaFeature
		for i := 0; i < len(pairs); i += 2 {
			features = append(features, &emulation.MediaFeature{Name: pairs[i], Value: pairs[i+1]})
		}
		return emulation.SetEmulatedMedia().WithFeatures(features)
	}
}

func scheme(name string) option { return media("prefers-color-scheme", name) }

// noScripts is a browser without JavaScript.
func noScripts(w *tab) chromedp.Action {
	w.plain = true
	return emulation.SetScriptExecutionDisabled(true)
}

// picture is a screenshot of the whole page.
func (w *tab) picture() []byte {
	w.t.Helper()
	var png []byte
	w.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, _, _, _, _, size, err := page.GetLayoutMetrics().Do(ctx)
		if err != nil {
			return err
		}
		if size == nil || size.Width < 1 {
			return errors.New("the page has no size")
		}
		const tallest = 8000
		png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).
			WithClip(&page.Viewport{Width: size.Width, Height: min(size.Height, tallest), Scale: 1}).Do(ctx)
		return err
	}))
	return png
}
