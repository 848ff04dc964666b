package browser

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"testing"
)

// widths are those of a desktop, a tablet and a phone.
var widths = []int64{1280, 768, 380}

// TestAxe runs axe-core on every page: all rules at each width, and the rules about colours in the
// dark scheme, too. All widths in both schemes take minutes; 'make looks' runs them.
func TestAxe(t *testing.T) {
	begin(t)
	full := os.Getenv("PARLEY_LOOKS") == "full"
	s := readOnly(t)
	eachPage(t, s, func(t *testing.T, w *tab, _ pageCase) {
		for _, width := range widths {
			if !full && width == 768 {
				continue
			}
			w.set(viewport(width, 900), scheme("light"))
			w.mustBeAccessible(fmt.Sprintf("%d px, light", width))
			if !full && width != 1280 {
				continue
			}
			w.set(scheme("dark"))
			w.mustBeAccessible(fmt.Sprintf("%d px, dark", width), "color-contrast")
		}
	})
}

// overflow lists the elements that make the page wider than its window.
const overflow = `(() => {
	const page = document.scrollingElement, width = document.documentElement.clientWidth;
	if (page.scrollWidth <= width) return [];
	const inside = e => { for (let p = e.parentElement; p; p = p.parentElement)
		if (getComputedStyle(p).overflowX !== 'visible') return true; return false };
	return ['the page is ' + page.scrollWidth + ' px wide'].concat([...document.body.querySelectorAll('*')]
		.filter(e => e.getBoundingClientRect().right > width + 1 && !inside(e)).slice(0, 5).map(e => e.outerHTML.slice(0, 150)));
})()`

// faint lists fields whose border has too little contrast.
const faint = `(() => {
	const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
	const over = (colour, under) => { canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
		canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
		const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data; return 'rgb(' + [r, g, b] + ')' };
	const behind = e => { const all = []; for (; e; e = e.parentElement) all.unshift(getComputedStyle(e).backgroundColor);
		return all.reduce((under, c) => over(c, under), 'Canvas') };
	const light = c => { const [r, g, b] = c.match(/\d+/g).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b };
	const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((x, y) => y - x); return (x + .05) / (y + .05) };
	return [...document.querySelectorAll('input:not([type=hidden],[type=checkbox],[type=radio],[type=submit]), select, textarea')]
		.filter(e => e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().width > 2).flatMap(e => {
			const style = getComputedStyle(e), around = behind(e.parentElement);
			if (style.borderBottomStyle === 'none' || parseFloat(style.borderBottomWidth) < 1) return ['no border: ' + e.outerHTML.slice(0, 120)];
			const r = ratio(over(style.borderBottomColor, around), around);
			return r >= 3 ? [] : [r.toFixed(2) + ': ' + e.outerHTML.slice(0, 120)];
		});
})()`

// small lists targets that are too small for a finger, which may come down anywhere within 22 px
// of the middle. Links within a sentence are as high as the sentence.
const small = `(() => {
	const least = 43.5;
	const hits = (e, label) => {
		e.scrollIntoView({block: 'center'});
		const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
		return [[0, -21], [0, 21], [-21, 0], [21, 0]].every(([dx, dy]) => {
			const hit = document.elementFromPoint(x + dx, y + dy);
			return hit && (e.contains(hit) || label?.contains(hit));
		});
	};
	return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')].filter(e => {
		if (!e.checkVisibility({visibilityProperty: true, opacityProperty: true})) return false;
		let r = e.getBoundingClientRect();
		if (r.width <= 1 || r.height <= 1 || r.bottom + scrollY <= 0 || r.right <= 0) return false;
		if (e.matches('.skip, .sr')) return false;
		const label = e.labels?.[0];
		if (e.matches('[type=checkbox], [type=radio]') && label?.getBoundingClientRect().height > 1) r = label.getBoundingClientRect();
		if (r.height >= least && r.width >= least) return false;
		if (e.tagName === 'A' && getComputedStyle(e).display === 'inline') {
			const own = e.textContent.trim().length, all = e.parentElement.textContent.trim().length;
			if (all > own) return false;
		}
		return !hits(e, label);
	}).slice(0, 12).map(e => { const r = e.getBoundingClientRect();
		return Math.round(r.width) + '×' + Math.round(r.height) + ' ' + e.outerHTML.replace(/\s+/g, ' ').slice(0, 140) });
})()`

// none fails for each item that an expression lists.
func (w *tab) none(what, expression string) {
	w.t.Helper()
	for _, found := range js[[]string](w, expression) {
		w.t.Errorf("%s on %s: %s, want none", what, w.path(), found)
	}
}

// TestLooks checks what axe-core does not, on every page.
func TestLooks(t *testing.T) {
	begin(t)
	s := readOnly(t)
	eachPage(t, s, func(t *testing.T, w *tab, _ pageCase) {
		for _, width := range append(widths, 320) {
			w.set(viewport(width, 900))
			w.none(fmt.Sprintf("too wide at %d px", width), overflow)
		}
		w.set(zoomed)
		w.none("too wide at 200 %", overflow)
		w.set(viewport(1280, 900))
		for _, name := range []string{"light", "dark"} {
			w.set(scheme(name))
			w.none("faint border in "+name, faint)
		}
		w.set(viewport(380, 800), touch)
		if !js[bool](w, "matchMedia('(pointer: coarse)').matches") {
			t.Fatal("got a fine pointer, want touch to be emulated")
		}
		w.none("small target", small)
		w.set(media("prefers-reduced-motion", "reduce"))
		w.none(
			"motion",
			`document.getAnimations().filter(a => a.playState === 'running').map(a => String(a.animationName || a))`,
		)
		w.set(media("forced-colors", "active"))
		if n := colours(t, w.picture()); n < 3 {
			t.Errorf("page in forced colours has %d colours, want at least 3", n)
		}
	})
}

// colours counts the colours of a picture, up to ten.
func colours(t *testing.T, data []byte) int {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[3]uint32]bool{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y += 2 {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x += 2 {
			r, g, b, _ := picture.At(x, y).RGBA()
			seen[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
			if len(seen) >= 10 {
				return len(seen)
			}
		}
	}
	return len(seen)
}
