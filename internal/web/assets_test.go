package web

import (
	"io/fs"
	"regexp"
	"testing"
)

// plainClass matches a rule for a class alone.
var plainClass = regexp.MustCompile(`(?m)(?:^|[,}]\s*)(\.[a-z][a-z-]*)\s*[,{]`)

// Each part of the style sheet is for its own pages. If two parts defined the same class, one page
// would change the look of another.
func TestStylesOfPagesDoNotMeet(t *testing.T) {
	t.Parallel()
	parts, err := fs.Glob(staticFiles, "static/css/*.css")
	if err != nil || len(parts) < 3 {
		t.Fatal(parts, err)
	}
	owner := map[string]string{}
	for _, part := range parts {
		if part == "static/css/90-touch.css" { // enlarges controls of other parts
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
