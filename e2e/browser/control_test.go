package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Roles as Chromium names them.
const (
	button   = "button"
	link     = "link"
	textbox  = "textbox"
	search   = "searchbox"
	checkbox = "checkbox"
	radio    = "radio"
	choice   = "combobox"
	heading  = "heading"
	summary  = "DisclosureTriangle"
)

// control is an element that assistive technology can reach.
type control struct {
	role, name string
	node       cdp.BackendNodeID
}

// controls lists the controls with the role, in page order.
func (w *tab) controls(role string) ([]control, error) { return w.controlsIn("html", role) }

// controlsIn is controls for a part of the page.
func (w *tab) controlsIn(selector, role string) ([]control, error) {
	part, err := evaluate[*runtime.RemoteObject](w, fmt.Sprintf("document.querySelector(%q)", selector))
	if err != nil {
		return nil, err
	}
	found, err := ask(w, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: part.ObjectID, Role: role})
	if err != nil {
		return nil, err
	}
	var out []control
	for _, n := range found.Nodes {
		if !n.Ignored && n.BackendDOMNodeID != 0 {
			out = append(out, control{role: role, name: axText(n.Name), node: n.BackendDOMNodeID})
		}
	}
	return out, nil
}

func axText(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var s string
	_ = json.Unmarshal(v.Value, &s) // a name is a string
	return s
}

// find waits for the control with the name. A name that ends in … is a prefix. There must be
// exactly one: two controls with the same name confuse people, too.
func (w *tab) find(role, name string) control {
	w.t.Helper()
	var found control
	err := eventually(func() error {
		list, err := w.controls(role)
		if err != nil {
			return err
		}
		var matches []control
		for _, c := range list {
			if named(c.name, name) {
				matches = append(matches, c)
			}
		}
		switch {
		case len(matches) == 1:
			found = matches[0]
			return nil
		case len(matches) > 1 && !strings.HasSuffix(name, "…"):
			return fmt.Errorf("there are %d", len(matches))
		case len(matches) > 1:
			found = matches[0]
			return nil
		}
		return fmt.Errorf("there are only %q", names(list))
	})
	if err != nil {
		w.t.Fatalf("there is no %s %q: %v", role, name, err)
	}
	return found
}

func named(got, want string) bool {
	if start, ok := strings.CutSuffix(want, "…"); ok {
		return strings.HasPrefix(squeeze(got), squeeze(start))
	}
	return squeeze(got) == squeeze(want)
}

func names(list []control) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.name)
	}
	return out
}

// has reports whether there is such a control now.
func (w *tab) has(role, name string) bool {
	w.t.Helper()
	list, err := w.controls(role)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range list {
		if named(c.name, name) {
			return true
		}
	}
	return false
}

// on calls a function with the control's element as this.
func (w *tab) on(c control, function string) error {
	o, err := ask(w, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: c.node})
	if err != nil {
		return err
	}
	out, err := ask(
		w,
		runtime.CallFunctionOn,
		runtime.CallFunctionOnParams{FunctionDeclaration: function, ObjectID: o.Object.ObjectID},
	)
	if err == nil && out.ExceptionDetails != nil {
		err = &chromedp.ExceptionError{ExceptionDetails: out.ExceptionDetails}
	}
	return err
}

// tap clicks a control, times times in a row, without waiting for a response.
func (w *tab) tap(c control, times int64) {
	w.t.Helper()
	x, y, err := w.place(c)
	for n := int64(1); n <= times && err == nil; n++ {
		err = w.mouse(x, y, n)
	}
	if err != nil {
		w.t.Fatalf("press the %s %q: %v", c.role, c.name, err)
	}
}

// mouse clicks at a point, for the nth time in a row.
func (w *tab) mouse(x, y float64, nth int64) (err error) {
	for _, kind := range []input.DispatchMouseEventType{chromedp.MousePressed, chromedp.MouseReleased} {
		if err == nil {
			_, err = ask(
				w,
				input.DispatchMouseEvent,
				input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: nth},
			)
		}
	}
	return err
}

// place returns the middle of a control, after scrolling it into view.
func (w *tab) place(c control) (x, y float64, err error) {
	if _, err := ask(w, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: c.node}); err != nil {
		return 0, 0, err
	}
	out, err := ask(w, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: c.node})
	if err != nil {
		return 0, 0, err
	}
	if len(out.Quads) == 0 {
		return 0, 0, errors.New("it has no place on the page")
	}
	q := out.Quads[0]
	return (q[0] + q[2] + q[4] + q[6]) / 4, (q[1] + q[3] + q[5] + q[7]) / 4, nil
}

// press clicks a control that sends no request: a summary, a checkbox, a radio button.
func (w *tab) press(role, name string) {
	w.t.Helper()
	w.tap(w.find(role, name), 1)
}

// click clicks a button or link, and waits for the page that follows.
func (w *tab) click(role, name string) {
	w.t.Helper()
	c := w.find(role, name)
	w.follow("click on "+name, func() { w.tap(c, 1) })
}

// fill replaces the text of the field with the label.
func (w *tab) fill(label, text string) {
	w.t.Helper()
	w.write(w.field(label), text)
}

// field returns the input with the label, of any type.
func (w *tab) field(label string) control {
	w.t.Helper()
	var found control
	err := eventually(func() error {
		var all []string
		for _, role := range []string{textbox, search, choice, "spinbutton", "Date", "DateTime"} {
			list, err := w.controls(role)
			if err != nil {
				return err
			}
			for _, c := range list {
				if named(c.name, label) {
					found = c
					return nil
				}
			}
			all = append(all, names(list)...)
		}
		return fmt.Errorf("there are only %q", all)
	})
	if err != nil {
		w.t.Fatalf("there is no field %q: %v", label, err)
	}
	return found
}

func (w *tab) write(c control, text string) {
	w.t.Helper()
	if err := w.on(c, "function() { this.focus(); this.select?.() }"); err != nil {
		w.t.Fatal(err)
	}
	if text == "" {
		w.keys(kb.Backspace)
		return
	}
	call(w, input.InsertText, input.InsertTextParams{Text: text})
}

// focus puts the focus on a control.
func (w *tab) focus(role, name string) {
	w.t.Helper()
	if err := w.on(w.find(role, name), "function() { this.focus() }"); err != nil {
		w.t.Fatal(err)
	}
}

// keys presses keys: text, or those of the package kb.
func (w *tab) keys(keys string) {
	w.t.Helper()
	for _, r := range keys {
		if err := w.key(r); err != nil {
			w.t.Fatalf("press %q: %v", r, err)
		}
	}
}

func (w *tab) key(r rune) error {
	if r < ' ' || r > '~' {
		ctx, cancel := context.WithTimeout(w.ctx, patience)
		defer cancel()
		return chromedp.Do(ctx, chromedp.KeyEvent(string(r)))
	}
	// As one event, so that a script which takes the key keeps its character out of fields.
	text := string(r)
	_, err := ask(
		w,
		input.DispatchKeyEvent,
		input.DispatchKeyEventParams{Type: kb.KeyDown, Key: text, Text: text, UnmodifiedText: text},
	)
	if err == nil {
		_, err = ask(w, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kb.KeyUp, Key: text})
	}
	return err
}

// focused describes the focused element, such as "button#vote-for"; "" if there is none.
func (w *tab) focused() string {
	w.t.Helper()
	return js[string](w, `(e => !e || e === document.body || e === document.documentElement ? ''
		: e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') )(document.activeElement)`)
}
