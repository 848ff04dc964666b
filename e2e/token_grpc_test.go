package e2e

import (
	"context"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/pgtest"
)

// TestGRPCTakesAccessTokens calls an agent over gRPC with tokens instead of keys.
func TestGRPCTakesAccessTokens(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	s := serve(t, engine{"postgres", []string{"--database", database}}, "--rate-limit", "0")
	admin, client, rpc := s.firstAdmin(t), s.registered(t, callback), dialGRPC(t, s)
	send := func(token string) codes.Code {
		t.Helper()
		_, err := rpc.SendMessage(bearing(t.Context(), token),
			&a2apb.SendMessageRequest{Tenant: "echo", Message: &a2apb.Message{
				MessageId: "m", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hello"}}},
			}})
		return status.Code(err)
	}
	mine := admin.token(t, client, "", "svc:tasks:read", "svc:a2a:write")
	expired := admin.token(t, client, "", "svc:a2a:write")
	// Its expiry is minutes away, so the test moves it before the server has seen the token.
	s.expire(t, database, expired.AccessToken)
	for name, c := range map[string]struct {
		token string
		want  codes.Code
	}{
		"of a person":             {mine.AccessToken, codes.OK},
		"of a service":            {s.serviceToken(t, "main", "crm", "svc:a2a:write"), codes.OK},
		"restricted to the agent": {s.serviceToken(t, "main", "one", "svc:a2a:write", "agent:echo"), codes.OK},
		"restricted to another agent": {
			s.serviceToken(t, "main", "two", "svc:a2a:write", "agent:other"),
			codes.PermissionDenied,
		},
		"without svc:a2a:write": {
			admin.token(t, client, "", "svc:tasks:read", "svc:tasks:write").AccessToken,
			codes.PermissionDenied,
		},
		"for the tools only": {
			admin.token(t, client, s.base+"/mcp", "svc:a2a:write").AccessToken,
			codes.Unauthenticated,
		},
		"expired":                   {expired.AccessToken, codes.Unauthenticated},
		"a refresh token":           {mine.RefreshToken, codes.Unauthenticated},
		"mistyped":                  {mine.AccessToken[:len(mine.AccessToken)-1] + "!", codes.Unauthenticated},
		"with the letters of a key": {"parley_at_" + s.key[len("parley_"):], codes.Unauthenticated},
	} {
		if got := send(c.token); got != c.want {
			t.Errorf("a token %s: %v, want %v", name, got, c.want)
		}
	}
	s.revokeToken(t, client, mine.AccessToken)
	eventually(t, soon, "the revoked token is refused",
		func() bool { return send(mine.AccessToken) == codes.Unauthenticated })
}

// expire sets a token's expiry into the past.
func (s *server) expire(t *testing.T, database, token string) {
	t.Helper()
	ctx := t.Context()
	db := must(pgx.Connect(ctx, database))(t)
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	done, err := db.Exec(ctx, `UPDATE oauth_tokens SET created_at = created_at - 3600000000, expires_at = expires_at - 3600000000
		WHERE hash = encode(sha256(convert_to($1, 'UTF8')), 'hex')`, token)
	if err != nil || done.RowsAffected() != 1 {
		t.Fatalf("expire a token: got %v, %v; want 1 row", done, err)
	}
}
