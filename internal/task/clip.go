package task

import (
	"strings"
	"unicode/utf8"
)

// clip cuts a text to most bytes, and omits other content that is larger.
func (p *Part) clip(most int) {
	switch {
	case p.Kind == TextPart && len(p.Text) > most:
		for most > 0 && !utf8.RuneStart(p.Text[most]) {
			most--
		}
		p.Left, p.Text = int64(len(p.Text)-most), strings.Clone(p.Text[:most])
	case len(p.Data) > most:
		p.Left, p.Data = int64(len(p.Data)), nil
	case p.Bytes != nil:
		p.Left, p.Bytes = int64(len(p.Bytes)), nil
	}
}

// Clip shortens the content of each part; see Content.Clip.
func (a *Artifact) Clip(most int) {
	for i := range a.Parts {
		a.Parts[i].clip(most)
	}
}
