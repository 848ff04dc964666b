package web

import (
	"io/fs"
	"regexp"
	"testing"
)

// plainClass is a rule for a class alone, wherever it is used.
var plainClass = regexp.MustCompile(`(?m)(?:^|[,}]\s*)(\.[a-z][a-z-]*)\s*[,{]`)

// The parts of the style sheet are written for their own pages: a class that two of them define
// would make one page change the look of another.
func TestStylesOfPagesDoNotMeet(t *testing.T) {
	t.Parallel()
	parts, err := fs.Glob(staticFiles, "static/css/*.css")
	if err != nil || len(parts) < 3 {
		t.Fatal(parts, err)
	}
	owner := map[string]string{}
	for _, part := range parts {
		if part == "static/css/90-touch.css" { // enlarges what others define
			continue
		}
		text, err := staticFiles.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range plainClass.FindAllSubmatch(text, -1) {
			class := string(m[1])
			if first, ok := owner[class]; ok && first != part {
				t.Errorf("%s and %s both define %s", first, part, class)
			}
			owner[class] = part
		}
	}
}
