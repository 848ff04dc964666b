package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

const listItem = `{"=":0,"id":"<prop>","title":"Retry failed uploads","category":"reliability","status":"open","priority":"normal",
	"submitted_by":"user:ann","submitted_at":"<time>","votes_for":0,"votes_against":0,"my_vote":null,
	"fingerprint":null,"evidence_count":0,"text_version":1}`

var listTable = table{"2.4 and 4.1 the list", []row{
	{
		rule: "2.4 an org without proposals has an empty array, not null", as: "ann", call: "GET /proposals", status: 200,
		want: `{"=":0,"proposals":[],"total":0,"page":1,"next_cursor":null}`,
	},
	{rule: "4.2 submit", as: "ann", call: "POST /proposals", body: good, status: 201, save: "normal"},
	{
		rule: "2.4 items have these fields and no others", as: "ann", call: "GET /proposals", status: 200,
		want:   `{"=":0,"proposals":[` + listItem + `],"total":1,"page":1,"next_cursor":null}`,
		header: []string{"Content-Type: application/json.*", `X-Request-Id: .+`},
	},
	{
		rule: "4.2 submit a high one", as: "bot", call: "POST /proposals",
		body: but(`priority:"high"`, `category:"security"`, `title:"Rotate secrets"`), status: 201, save: "high",
	},
	{
		rule: "4.2 submit a low one", as: "root", call: "POST /proposals",
		body: but(`priority:"low"`, `title:"Sort the list"`), status: 201, save: "low",
	},
	{
		rule: "2.1 high proposals are reviewed first", as: "ann", call: "GET /proposals", status: 200,
		want: `{"proposals":[{"id":"{high}"},{"id":"{normal}"},{"id":"{low}"}],"total":3}`,
	},
	{
		rule: "4.1 sort=review is the default", as: "ann", call: "GET /proposals?sort=review", status: 200,
		want: `{"proposals":[{"id":"{high}"},{"id":"{normal}"},{"id":"{low}"}]}`,
	},
	{
		rule: "4.1 sort=newest", as: "ann", call: "GET /proposals?sort=newest", status: 200,
		want: `{"proposals":[{"id":"{low}"},{"id":"{high}"},{"id":"{normal}"}]}`,
	},
	{
		rule: "4.1 sort=oldest", as: "ann", call: "GET /proposals?sort=oldest", status: 200,
		want: `{"proposals":[{"id":"{normal}"},{"id":"{high}"},{"id":"{low}"}]}`,
	},
	{rule: "4.3 vote for the low one", as: "bot", call: "POST /proposals/{low}/vote", body: `{"vote":"for"}`, status: 200},
	{
		rule: "4.3 vote against the high one", as: "bot", call: "POST /proposals/{high}/vote", body: `{"vote":"against"}`,
		status: 200,
	},
	{
		rule: "4.1 sort=votes orders by votes for less votes against", as: "ann", call: "GET /proposals?sort=votes",
		status: 200,
		want:   `{"proposals":[{"id":"{low}"},{"id":"{normal}"},{"id":"{high}"}]}`,
	},
	{
		rule: "2.4 items count votes", as: "ann", call: "GET /proposals?sort=votes&limit=1", status: 200,
		want: `{"proposals":[{"votes_for":1,"votes_against":0,"my_vote":null}],"total":3}`,
	},
	{
		rule: "4.1 my_vote is the caller's own", as: "bot", call: "GET /proposals?sort=votes", status: 200,
		want: `{"proposals":[{"my_vote":"for"},{"my_vote":null},{"my_vote":"against"}]}`,
	},
	{
		rule: "4.1 page 1 of 2", as: "ann", call: "GET /proposals?limit=2", status: 200,
		want:   `{"proposals":[{"id":"{high}"},{"id":"{normal}"}],"total":3,"page":1,"next_cursor":"<string>"}`,
		header: []string{`Link: .*rel="?next"?.*`},
	},
	{
		rule: "4.1 page 2 of 2", as: "ann", call: "GET /proposals?limit=2&page=2", status: 200,
		want:   `{"proposals":[{"id":"{low}"}],"total":3,"page":2,"next_cursor":null}`,
		header: []string{`Link: .*rel="?prev"?.*`},
	},
	{
		rule: "4.1 a page past the end is empty with the true total", as: "ann", call: "GET /proposals?page=1000000",
		status: 200,
		want:   `{"proposals":[],"total":3,"page":1000000}`,
	},
	{
		rule: "8 the maximum page size is 100", as: "ann", call: "GET /proposals?limit=100", status: 200,
		want: `{"total":3}`,
	},
	{rule: "8 over the maximum", as: "ann", call: "GET /proposals?limit=101", status: 422, want: refuses("limit")},
	{rule: "4.1 limit=0", as: "ann", call: "GET /proposals?limit=0", status: 422, want: refuses("limit")},
	{rule: "4.1 limit below 0", as: "ann", call: "GET /proposals?limit=-1", status: 422, want: refuses("limit")},
	{rule: "4.1 limit is an integer", as: "ann", call: "GET /proposals?limit=ten", status: 422, want: refuses("limit")},
	{
		rule: "4.1 limit is an integer that fits", as: "ann", call: "GET /proposals?limit=99999999999999999999", status: 422,
		want: refuses("limit"),
	},
	{rule: "4.1 page=0", as: "ann", call: "GET /proposals?page=0", status: 422, want: refuses("page")},
	{rule: "4.1 page below 0", as: "ann", call: "GET /proposals?page=-1", status: 422, want: refuses("page")},
	{rule: "4.1 page is an integer", as: "ann", call: "GET /proposals?page=1.5", status: 422, want: refuses("page")},
	{
		rule: "4.1 an offset that overflows", as: "ann", call: "GET /proposals?page=9223372036854775807", status: 422,
		want: refuses("page"),
	},
	{rule: "4.1 an unknown sort", as: "ann", call: "GET /proposals?sort=best", status: 422, want: refuses("sort")},
	{rule: "4.1 an unknown parameter", as: "ann", call: "GET /proposals?stat=open", status: 422, want: refuses("stat")},
	{
		rule: "4.1 a repeated parameter", as: "ann", call: "GET /proposals?status=open&status=draft", status: 422,
		want: refuses("status"),
	},
	{
		rule: "4.1 a cursor that is none", as: "ann", call: "GET /proposals?cursor=abc", status: 422,
		want: refuses("cursor"),
	},
	{rule: "4.1 cursor and page exclude each other", as: "ann", call: "GET /proposals?cursor=abc&page=2", status: 422},
}}

var listFilterTable = table{"4.1 filters", []row{
	{
		rule: "4.2 by ann", as: "ann", call: "POST /proposals",
		body: but(`title:"Cache the tokens"`, `category:"performance"`), status: 201, save: "a",
	},
	{
		rule: "4.2 by bot", as: "bot", call: "POST /proposals",
		body: but(`title:"Document the tokenizer"`, `category:"documentation"`, `priority:"high"`), status: 201, save: "b",
	},
	{
		rule: "4.2 one to reject", as: "bot", call: "POST /proposals", body: but(`title:"Rewrite it"`), status: 201,
		save: "r",
	},
	{
		rule: "4.4 reject", as: "root", call: "PATCH /proposals/{r}", body: `{"status":"rejected","resolution_note":"no"}`,
		status: 200,
	},
	{
		rule: "4.2 one to approve", as: "bot", call: "POST /proposals", body: but(`title:"Approve me"`), status: 201,
		save: "p",
	},
	{rule: "4.4 approve", as: "root", call: "PATCH /proposals/{p}", body: `{"status":"approved"}`, status: 200},
	{
		rule: "4.2 one to resolve", as: "bot", call: "POST /proposals", body: but(`title:"Resolve me"`), status: 201,
		save: "v",
	},
	{rule: "4.4 approve", as: "root", call: "PATCH /proposals/{v}", body: `{"status":"approved"}`, status: 200},
	{rule: "4.4 resolve", as: "root", call: "PATCH /proposals/{v}", body: `{"status":"resolved"}`, status: 200},
	{
		rule: "2.1 ann's draft", as: "ann", call: "POST /proposals", body: but(`title:"Secret plan"`, `status:"draft"`),
		status: 201, save: "d",
	},

	{
		rule: "4.1 status defaults to open", as: "ann", call: "GET /proposals", status: 200,
		want: `{"proposals":[{"id":"{b}"},{"id":"{a}"}],"total":2}`,
	},
	{
		rule: "4.1 status=open", as: "ann", call: "GET /proposals?status=open", status: 200,
		want: `{"proposals":[{"id":"{b}"},{"id":"{a}"}],"total":2}`,
	},
	{
		rule: "4.1 status=rejected", as: "ann", call: "GET /proposals?status=rejected", status: 200,
		want: `{"proposals":[{"id":"{r}","status":"rejected"}],"total":1}`,
	},
	{
		rule: "4.1 status=approved", as: "ann", call: "GET /proposals?status=approved", status: 200,
		want: `{"proposals":[{"id":"{p}","status":"approved"}],"total":1}`,
	},
	{
		rule: "4.1 status=resolved", as: "ann", call: "GET /proposals?status=resolved", status: 200,
		want: `{"proposals":[{"id":"{v}","status":"resolved"}],"total":1}`,
	},
	{
		rule: "4.1 status=draft shows one's own", as: "ann", call: "GET /proposals?status=draft", status: 200,
		want: `{"proposals":[{"id":"{d}","status":"draft"}],"total":1}`,
	},
	{
		rule: "4.1 status=draft shows admins all", as: "root", call: "GET /proposals?status=draft", status: 200,
		want: `{"proposals":[{"id":"{d}"}],"total":1}`,
	},
	{
		rule: "2.1 a draft is in nobody else's list or total", as: "bot", call: "GET /proposals?status=draft", status: 200,
		want: `{"proposals":[],"total":0}`,
	},
	{rule: "4.1 status=all", as: "root", call: "GET /proposals?status=all", status: 200, want: `{"total":6}`},
	{
		rule: "4.1 status=all counts one's own drafts", as: "ann", call: "GET /proposals?status=all", status: 200,
		want: `{"total":6}`,
	},
	{
		rule: "2.1 status=all counts nobody else's drafts", as: "bot", call: "GET /proposals?status=all", status: 200,
		want: `{"total":5}`, absent: "{d}",
	},
	{
		rule: "2.1 a search finds one's own draft", as: "ann", call: "GET /proposals?status=all&q=secret", status: 200,
		want: `{"proposals":[{"id":"{d}"}],"total":1}`,
	},
	{
		rule: "2.1 a search finds nobody else's draft", as: "bot", call: "GET /proposals?status=all&q=secret", status: 200,
		want: `{"proposals":[],"total":0}`,
	},
	{
		rule: "2.1 submitted_by reveals no draft", as: "bot", call: "GET /proposals?status=all&submitted_by=user:ann",
		status: 200, want: `{"proposals":[{"id":"{a}"}],"total":1}`,
	},
	{
		rule: "2.1 a draft's id is unknown to others", as: "bot", call: "GET /proposals/{d}", status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{rule: "2.1 and so are its votes", as: "bot", call: "GET /proposals/{d}/votes", status: 404},
	{rule: "2.1 and its history", as: "bot", call: "GET /proposals/{d}/history", status: 404},
	{rule: "2.1 and voting on it", as: "bot", call: "POST /proposals/{d}/vote", body: `{"vote":"for"}`, status: 404},
	{rule: "2.1 and editing it", as: "bot", call: "PATCH /proposals/{d}", body: `{"title":"Mine"}`, status: 404},

	{
		rule: "4.1 category", as: "ann", call: "GET /proposals?category=performance", status: 200,
		want: `{"proposals":[{"id":"{a}","category":"performance"}],"total":1}`,
	},
	{
		rule: "4.1 category of which there is none", as: "ann", call: "GET /proposals?category=feature", status: 200,
		want: `{"proposals":[],"total":0}`,
	},
	{rule: "4.1 category=all", as: "ann", call: "GET /proposals?category=all", status: 200, want: `{"total":2}`},
	{
		rule: "2.2 an unknown category", as: "ann", call: "GET /proposals?category=other", status: 422,
		want: refuses("category"),
	},
	{rule: "4.1 an unknown status", as: "ann", call: "GET /proposals?status=closed", status: 422, want: refuses("status")},
	{
		rule: "4.1 submitted_by", as: "ann", call: "GET /proposals?submitted_by=agent:bot-{org}", status: 200,
		want: `{"proposals":[{"id":"{b}"}],"total":1}`,
	},
	{
		rule: "4.1 submitted_by nobody known", as: "ann", call: "GET /proposals?submitted_by=user:nobody", status: 200,
		want: `{"proposals":[],"total":0}`,
	},
	{rule: "4.1 submitted_by=all", as: "ann", call: "GET /proposals?submitted_by=all", status: 200, want: `{"total":2}`},
	{
		rule: "4.1 priority", as: "ann", call: "GET /proposals?priority=high", status: 200,
		want: `{"proposals":[{"id":"{b}"}],"total":1}`,
	},
	{
		rule: "4.1 an unknown priority", as: "ann", call: "GET /proposals?priority=urgent", status: 422,
		want: refuses("priority"),
	},
	{
		rule: "4.1 filters combine", as: "ann",
		call: "GET /proposals?status=approved&submitted_by=agent:bot-{org}&category=reliability", status: 200,
		want: `{"proposals":[{"id":"{p}"}],"total":1}`,
	},
	{
		rule: "4.1 q: the last word is a prefix", as: "ann", call: "GET /proposals?q=token", status: 200,
		want: `{"proposals":[{"id":"{b}"},{"id":"{a}"}],"total":2}`,
	},
	{
		rule: "4.1 q: all words occur, in whatever order and case", as: "ann", call: "GET /proposals?q=TOKENS+cache",
		status: 200, want: `{"proposals":[{"id":"{a}"}],"total":1}`,
	},
	{
		rule: "4.1 q looks into problem and suggested_fix", as: "ann", call: "GET /proposals?q=uploads+three+tim",
		status: 200, want: `{"total":2}`,
	},
	{
		rule: "4.1 q: only the last word is a prefix", as: "ann", call: "GET /proposals?q=tok+cache", status: 200,
		want: `{"proposals":[],"total":0}`,
	},
	{
		rule: "4.1 q combines with filters", as: "ann", call: "GET /proposals?q=token&category=documentation", status: 200,
		want: `{"proposals":[{"id":"{b}"}],"total":1}`,
	},
	{
		rule: "4.1 q is text, not a query language", as: "ann", call: "GET /proposals?q=%22token%22+OR+*", status: 200,
		want: `{"proposals":[],"total":0}`,
	},
	{rule: "4.1 q without a word", as: "ann", call: "GET /proposals?q=%21%21", status: 422, want: refuses("q")},
}}

type listed struct {
	Proposals []struct{ ID string }
	Total     int
	Page      int
	Next      *string `json:"next_cursor"`
}

// testPaging walks lists that are longer than a page, by page and by cursor.
func testPaging(t *testing.T, s *server) {
	const rows = 105
	w := newWorld(t, s, "paging")
	var newest []string
	priorities := []string{"low", "normal", "high"}
	for i := range rows {
		p := priorities[i%len(priorities)]
		a := w.must(t, "ann", "POST /proposals", but(`priority:"`+p+`"`, fmt.Sprintf(`title:"Number %d"`, i)))
		newest = append([]string{a.str("id")}, newest...)
	}
	t.Run("8 the default page size is 20", func(t *testing.T) {
		if l := w.list(t, "/proposals"); len(l.Proposals) != 20 || l.Total != rows {
			t.Errorf("got %d of %d, want 20 of %d", len(l.Proposals), l.Total, rows)
		}
	})
	t.Run("8 the maximum page size is 100", func(t *testing.T) {
		if l := w.list(t, "/proposals?limit=100"); len(l.Proposals) != 100 || l.Total != rows {
			t.Errorf("got %d of %d, want 100 of %d", len(l.Proposals), l.Total, rows)
		}
	})
	for _, sort := range []string{"review", "newest", "oldest", "votes"} {
		for _, q := range []string{"", "&q=number"} {
			t.Run("4.1 pages and cursors show the same rows, sort="+sort+q, func(t *testing.T) {
				query := "/proposals?limit=7&sort=" + sort + q
				byPage, byCursor := w.walkPages(t, query), w.walkCursor(t, query)
				if !slices.Equal(byPage, byCursor) {
					t.Errorf("walk by page = %v\nwant the walk by cursor, %v", byPage, byCursor)
				}
				if sort == "newest" && !slices.Equal(byPage, newest) {
					t.Errorf("got %v\nwant %v", byPage, newest)
				}
				if slices.Sort(byPage); len(slices.Compact(byPage)) != rows {
					t.Errorf("saw %d rows, want %d", len(slices.Compact(byPage)), rows)
				}
			})
		}
	}
	t.Run("4.1 a cursor of another list is refused", func(t *testing.T) {
		next := w.list(t, "/proposals?limit=7").Next
		w.check(t, row{
			rule: "4.1", as: "ann", call: "GET /proposals?status=all&cursor=" + *next, status: 422,
			want: refuses("cursor"),
		})
	})
}

func (w *world) list(t *testing.T, path string) listed {
	t.Helper()
	var l listed
	if err := json.Unmarshal(w.must(t, "ann", "GET "+path, "").body, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func (w *world) walkPages(t *testing.T, path string) (ids []string) {
	t.Helper()
	for page := 1; ; page++ {
		l := w.list(t, fmt.Sprintf("%s&page=%d", path, page))
		if len(l.Proposals) == 0 {
			return ids
		}
		for _, p := range l.Proposals {
			ids = append(ids, p.ID)
		}
	}
}

func (w *world) walkCursor(t *testing.T, path string) (ids []string) {
	t.Helper()
	for cursor := ""; ; {
		l := w.list(t, path+cursor)
		for _, p := range l.Proposals {
			ids = append(ids, p.ID)
		}
		if l.Next == nil {
			return ids
		}
		cursor = "&cursor=" + *l.Next
	}
}
