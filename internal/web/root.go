package web

import "net/http"

// start redirects from "/" to the member's org, or to the sign-in page.
func (p *Pages) start(w http.ResponseWriter, r *http.Request) {
	if m := p.must(w, r); m != nil {
		http.Redirect(w, r, "/orgs/"+m.Org, http.StatusSeeOther)
	}
}
