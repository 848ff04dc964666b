package clilogin

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
)

// style is the style sheet of the page where a login ends. It has the tokens of the
// dashboard; a test compares them.
const style = `
:root {
  color-scheme: light dark;
  --bg: light-dark(#fbfbfc, #111214);
  --surface: light-dark(#fff, #18191c);
  --line: light-dark(#e3e5e9, #2a2c31);
  --text: light-dark(#16181d, #e8e9ec);
  --accent: light-dark(#3b5bdb, #8ea6ff);
  --radius: 8px;
  --s1: 4px; --s2: 8px; --s3: 12px; --s4: 16px; --s5: 24px; --s6: 32px;
  font: .875rem/1.5 ui-sans-serif, system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
* { box-sizing: border-box; margin: 0; }
body { background: var(--bg); color: var(--text); display: grid; justify-items: center; padding: 8vh var(--s4); }
main { width: 100%; max-width: 28rem; padding: var(--s6); }
main { background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.brand { color: var(--accent); font-weight: 700; letter-spacing: .02em; }
h1 { font-size: 1.25rem; line-height: 1.75rem; font-weight: 600; letter-spacing: -.01em; margin-bottom: var(--s4); }
`

// policy lets the page use its own style sheet and nothing else.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'"
}()

// page shows the end of a login in the browser.
func page(w http.ResponseWriter, status int, title, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the URL has the code
	h.Set("Connection", "close")
	w.WriteHeader(status)
	// An error means that the browser is gone.
	_, _ = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%[1]s · Parley</title>
<style>%[3]s</style>
</head>
<body>
<main>
<p class="brand">Parley</p>
<h1>%[1]s</h1>
<p>%[2]s</p>
</main>
</body>
</html>
`, html.EscapeString(title), html.EscapeString(text), style)
}
