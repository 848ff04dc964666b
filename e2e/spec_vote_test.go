package e2e

const voteAnswer = `{"=":0,"proposal_id":"{p}","vote":"for","comment":"Yes.",
	"votes_for":1,"votes_against":0,"voted_at":"<time>","replaced":false}`

var voteTable = table{"2.3 and 4.3 voting", []row{
	{rule: "4.2 submit", as: "ann", call: "POST /proposals", body: good, status: 201, save: "p"},
	{
		rule: "4.3 a vote", as: "bot", call: "POST /proposals/{p}/vote", body: `{"vote":"for","comment":"Yes."}`, status: 200,
		want: voteAnswer,
	},
	{
		rule: "2.3 voting again replaces", as: "bot", call: "POST /proposals/{p}/vote",
		body: `{"vote":"against","comment":"No."}`, status: 200,
		want: `{"vote":"against","votes_for":0,"votes_against":1,"replaced":true}`,
	},
	{
		rule: "8 one vote per voter: the same again counts once", as: "bot", call: "POST /proposals/{p}/vote",
		body: `{"vote":"against"}`, status: 200,
		want: `{"vote":"against","comment":"","votes_for":0,"votes_against":1,"replaced":true}`,
	},
	{
		rule: "2.3 another voter", as: "root", call: "POST /proposals/{p}/vote", body: `{"vote":"for"}`, status: 200,
		want: `{"votes_for":1,"votes_against":1,"replaced":false}`,
	},
	{
		rule: "2.3 one's own proposal", as: "ann", call: "POST /proposals/{p}/vote", body: `{"vote":"for"}`, status: 200,
		want: `{"votes_for":2,"votes_against":1}`,
	},
	{
		rule: "2.1 the record counts them", as: "ann", call: "GET /proposals/{p}", status: 200,
		want: `{"votes_for":2,"votes_against":1,"my_vote":"for"}`,
	},
	{
		rule: "4.3 the votes, oldest first", as: "reader", call: "GET /proposals/{p}/votes", status: 200,
		want: `{"=":0,"votes":[{"=":0,"voter":"agent:bot-{org}","vote":"against","comment":"","voted_at":"<time>"},
			{"voter":"user:root","vote":"for"},{"voter":"user:ann"}],"total":3,"page":1}`,
	},
	{
		rule: "4.3 votes have pages", as: "reader", call: "GET /proposals/{p}/votes?limit=1&page=2", status: 200,
		want: `{"votes":[{"voter":"user:root"}],"total":3,"page":2}`,
	},
	{
		rule: "8 with the same maximum", as: "reader", call: "GET /proposals/{p}/votes?limit=101", status: 422,
		want: refuses("limit"),
	},
	{
		rule: "4.3 withdraw", as: "root", call: "DELETE /proposals/{p}/vote", status: 200,
		want: `{"=":0,"proposal_id":"{p}","votes_for":1,"votes_against":1}`,
	},
	{
		rule: "4.3 nothing left to withdraw", as: "root", call: "DELETE /proposals/{p}/vote", status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{
		rule: "4.3 a withdrawn vote is gone", as: "root", call: "GET /proposals/{p}", status: 200,
		want: `{"my_vote":null,"votes_for":1}`,
	},
	{
		rule: "2.3 vote is required", as: "bot", call: "POST /proposals/{p}/vote", body: `{"comment":"x"}`, status: 422,
		want: complains("/vote"),
	},
	{
		rule: "2.3 another value", as: "bot", call: "POST /proposals/{p}/vote", body: `{"vote":"abstain"}`, status: 422,
		want: complains("/vote"),
	},
	{
		rule: "2.3 another type", as: "bot", call: "POST /proposals/{p}/vote", body: `{"vote":true}`, status: 422,
		want: complains("/vote"),
	},
	{
		rule: "8 comment of 4,000", as: "bot", call: "POST /proposals/{p}/vote",
		body: `{"vote":"for","comment":` + long(4000) + `}`, status: 200,
	},
	{
		rule: "8 comment of 4,001", as: "bot", call: "POST /proposals/{p}/vote",
		body: `{"vote":"for","comment":` + long(4001) + `}`, status: 422, want: complains("/comment"),
	},
	{
		rule: "2.3 an unknown member", as: "bot", call: "POST /proposals/{p}/vote", body: `{"vote":"for","voter":"user:ann"}`,
		status: 422, want: complains("/voter"),
	},
	{
		rule: "4.3 an unknown proposal", as: "bot", call: "POST /proposals/{none}/vote", body: `{"vote":"for"}`, status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{
		rule: "4.3 Idempotency-Key, first", as: "root", call: "POST /proposals/{p}/vote", body: `{"vote":"for"}`,
		with: []string{"Idempotency-Key: v1"}, status: 200, want: `{"replaced":false}`,
	},
	{
		rule: "4.3 a retry gets the first answer", as: "root", call: "POST /proposals/{p}/vote", body: `{"vote":"for"}`,
		with: []string{"Idempotency-Key: v1"}, status: 200,
		want: `{"replaced":false}`, header: []string{"Idempotency-Replayed: true"},
	},
	{rule: "4.4 approve", as: "root", call: "PATCH /proposals/{p}", body: `{"status":"approved"}`, status: 200},
	{
		rule: "4.3 only open proposals", as: "bot", call: "POST /proposals/{p}/vote", body: `{"vote":"for"}`, status: 409,
		want: `{"code":"proposal.not_open"}`,
	},
	{
		rule: "4.3 withdrawing too", as: "bot", call: "DELETE /proposals/{p}/vote", status: 409,
		want: `{"code":"proposal.not_open"}`,
	},
	{
		rule: "2.1 votes stay when it is decided", as: "ann", call: "GET /proposals/{p}", status: 200,
		want: `{"votes_for":3,"votes_against":0}`,
	},
}}
