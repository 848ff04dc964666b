package web

import (
	"fmt"
	"html/template"
)

// icons are the shapes of the icons, drawn in a box of 16 by 16 with strokes of the same width.
var icons = map[string]string{
	"overview":  `<path d="M2.5 7.5L8 3l5.500 4.500V13h-11z"/>`,
	"proposals": `<path d="M2 9l2-6h8l2 6v4H2z"/><path d="M2 9h4l1 2h2l1-2h4"/>`,
	"followups": `<path d="M3 8.500l3.200 3L13 4.500"/>`,
	"agent":     `<rect x="3" y="5" width="10" height="8" rx="2"/><path d="M8 5V2.500M6 9h.01M10 9h.01"/>`,
	"service": `<rect x="2.500" y="3" width="11" height="4" rx="1"/>` +
		`<rect x="2.500" y="9" width="11" height="4" rx="1"/><path d="M5 5h.01M5 11h.01"/>`,
	"task":      `<path d="M9 2L4 9h4l-1 5 5-7H8z"/>`,
	"catalogue": `<circle cx="7" cy="7" r="4.500"/><path d="M10.300 10.300l3.200 3.200"/>`,
	"key":       `<circle cx="5.500" cy="10.500" r="3"/><path d="M8 8l5-5m-2 2l2 2"/>`,
	"members": `<circle cx="6" cy="5.500" r="2.500"/><path d="M1.500 13.500c.500-3 2.300-4 4.500-4s4 1 4.500 4` +
		`M11 3.500a2.300 2.300 0 0 1 0 4M12 9.800c1.500.500 2.300 1.600 2.500 3.700"/>`,
	"client": `<rect x="2.500" y="3" width="11" height="10" rx="2"/><path d="M2.500 6.500h11M5 4.800h.01"/>`,
	"audit":  `<path d="M3.500 2.500h9v11h-9zM6 6h4M6 8.500h4M6 11h2"/>`,
	"settings": `<circle cx="8" cy="8" r="2"/><path d="M8 2.500v2M8 11.500v2M2.500 8h2M11.500 8h2` +
		`M4.100 4.100l1.400 1.400M10.500 10.500l1.400 1.400M4.100 11.900l1.400-1.400M10.500 5.500l1.400-1.400"/>`,
	"user":     `<circle cx="8" cy="5.500" r="2.500"/><path d="M3 13.500c.600-3 2.600-4 5-4s4.400 1 5 4"/>`,
	"high":     `<path d="M3.500 10L8 5.500 12.500 10"/>`,
	"low":      `<path d="M3.500 6L8 10.500 12.500 6"/>`,
	"check":    `<path d="M3 8.500l3.200 3L13 4.500"/>`,
	"todo":     `<circle cx="8" cy="8" r="5"/>`,
	"plus":     `<path d="M8 3v10M3 8h10"/>`,
	"friction": `<path d="M2 10l3-4 3 4 3-4 3 4"/>`,
	"webhook": `<circle cx="4" cy="11.500" r="2"/><circle cx="12" cy="11.500" r="2"/><circle cx="8" cy="4" r="2"/>` +
		`<path d="M7 5.800l-2 3.900M9 5.800l2 3.900M6 11.500h4"/>`,
	"events": `<path d="M1.500 8h3l2-5 3 10 2-5h3"/>`,
	"start":  `<path d="M4 2.500v11M4 3.500h8l-2 2.500 2 2.500H4"/>`,
}

// icon returns an icon. Screen readers skip it, so a label must stand beside it.
func icon(name string) (template.HTML, error) {
	shape, ok := icons[name]
	if !ok {
		return "", fmt.Errorf("unknown icon %q", name)
	}
	// The shapes are constants, so the result is safe.
	return template.HTML(`<svg class="i" viewBox="0 0 16 16" aria-hidden="true">` + shape + `</svg>`), nil
}
