package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is a pgbouncer in transaction mode in front of a server.
type Pooler struct{ dir string }

// StartPooler starts pgbouncer for the databases of the server at rawURL, which URL
// returned. It ends with the test.
func StartPooler(t testing.TB, rawURL string) *Pooler {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		if bin = "/usr/sbin/pgbouncer"; !exists(bin) {
			t.Fatal("pgtest: pgbouncer is not installed; run make deps")
		}
	}
	who, err := unprivileged() // pgbouncer does not run as root either
	if err != nil {
		t.Fatal(err)
	}
	dir, err := who.tempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// Few connections to the server, so that sessions are really shared.
	settings := fmt.Sprintf(`[databases]
* = host=%s user=postgres
[pgbouncer]
unix_socket_dir = %s
listen_addr =
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 6
max_client_conn = 2000
max_db_connections = 0
server_round_robin = 1
logfile = %s
`, u.Query().Get("host"), dir, filepath.Join(dir, "log"))
	ini := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(ini, []byte(settings), 0o644); err != nil { // another account reads it
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "-q", ini)
	cmd.Dir = dir
	cmd.SysProcAttr = who.attributes()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := &Pooler{dir: dir}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), p.URL(t, rawURL))
		if err == nil {
			_ = conn.Close(t.Context())
			return p
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("pgtest: pgbouncer did not start: %v\n%s", err, said)
		}
	}
}

// URL returns rawURL through the pooler.
func (p *Pooler) URL(t testing.TB, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("host", p.dir)
	q.Set("port", "6432")
	u.RawQuery = q.Encode()
	return u.String()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
