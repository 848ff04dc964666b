package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/store"
)

// settings looks for settings that are valid, but seldom meant.
func (e *exam) settings() {
	c := &e.Config
	if err := c.Validate(); err != nil {
		e.fail(err.Error(), "correct the flag, its variable or the file of --config")
		return
	}
	for flag, list := range map[string][]string{
		"--outbound-allow": c.OutboundAllow, "--push-allow": c.PushAllow,
		"--client-documents-allow": c.ClientDocumentsAllow,
	} {
		if err := outbound.CheckAllow(list); err != nil {
			e.fail(flag+": "+err.Error(), "correct it")
		}
	}
	open := !loopback(c.Listen)
	if open && !c.TLS() && c.PublicURL == "" {
		e.warn("the server listens on "+c.Listen+" without TLS, and --public-url is not set, so that links and cards "+
			"have an address that others cannot use", "set --public-url to the address that callers use")
	}
	if open && c.MetricsListen == "" && c.MetricsKey == "" {
		e.warn("whoever reaches "+c.Listen+" can read /metrics", "set --metrics-listen 127.0.0.1:9090, or PARLEY_METRICS_KEY")
	}
	if c.RateLimit == 0 {
		e.warn("--rate-limit is 0: one caller can use the whole server", "leave it out, or give a number")
	}
	for _, p := range c.TrustedProxies {
		if n, err := netip.ParsePrefix(p); err == nil && n.Bits() == 0 {
			e.fail("--trusted-proxies "+p+" believes the X-Forwarded-For of every caller, so that limits by address "+
				"can be evaded", "name the addresses of your proxies")
		}
	}
	e.ok("the settings are valid")
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// limits compares the limit of open files with what the settings allow.
func (e *exam) limits() {
	files := e.Files
	need := e.Config.MaxStreams + e.Config.MaxRequests + 500
	switch {
	case files == 0:
		e.ok("the system does not limit open files")
	case files < need:
		e.warn(fmt.Sprintf("the process may open %d files; %d streams and %d requests at once need %d", files,
			e.Config.MaxStreams, e.Config.MaxRequests, need),
			"raise the limit (ulimit -n, or LimitNOFILE= of systemd), or lower --max-streams")
	default:
		e.ok(fmt.Sprintf("the process may open %d files", files))
	}
}

// earliest is a time before which this program did not exist.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (e *exam) clock() {
	now := e.Now()
	synced, known := clockSynced()
	switch {
	case now.Before(earliest):
		e.fail("the clock says "+now.Format(time.RFC3339), "set the clock: leases, tokens and certificates depend on it")
	case known && !synced:
		e.warn("the clock of this machine is not synchronized", "run an NTP client such as chrony or systemd-timesyncd")
	case known:
		e.ok("the clock is synchronized")
	default:
		e.ok("the clock says " + now.UTC().Format(time.RFC3339))
	}
}

// littleSpace is the free space below which a warning is due.
const littleSpace = 1 << 30

// folder looks at the data folder. With PostgreSQL there is none.
func (e *exam) folder() {
	if e.Store.URL != "" {
		return
	}
	dir := e.Store.Dir
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		parent := filepath.Dir(filepath.Clean(dir))
		if st, err = os.Stat(parent); err != nil {
			e.warn("neither the folder "+dir+" nor the one above it exists", "see whether --data is the one you mean: the "+
				"first start makes it")
			return
		}
		e.ok("the folder " + dir + " does not exist yet: the first start makes it")
		dir = parent
	}
	switch {
	case err != nil:
		e.fail("the folder "+dir+" cannot be read: "+err.Error(), "give the user of the server rights on it")
		return
	case !st.IsDir():
		e.fail(dir+" is not a folder", "name a folder with --data")
		return
	}
	e.writable(dir)
	for _, text := range store.Exposed(e.Store.Dir) {
		e.warn(text, "")
	}
	if kind, bad := networkDisk(dir); bad {
		e.fail("the folder "+dir+" is on a network file system ("+kind+"), whose locks SQLite cannot rely on",
			"move it to a local disk, or use PostgreSQL")
	}
	if free, known := store.FreeBytes(dir); known && free < littleSpace {
		e.warn(fmt.Sprintf("only %d MiB are free on the disk of %s", free>>20, dir), "free some space, or move the folder")
	}
}

func (e *exam) writable(dir string) {
	f, err := os.CreateTemp(dir, ".parley-doctor-*")
	if err != nil {
		e.fail("cannot write to the folder "+dir+": "+err.Error(), "give the user of the server rights on it")
		return
	}
	_ = f.Close()
	if err := os.Remove(f.Name()); err != nil {
		e.fail("cannot remove files from the folder "+dir+": "+err.Error(), "give the user of the server rights on it")
		return
	}
	e.ok("the folder " + dir + " can be written")
}

// ports looks whether the addresses are free, or a Parley server has them.
func (e *exam) ports() {
	c := &e.Config
	for _, a := range []struct{ flag, addr string }{
		{"--listen", c.Listen}, {"--metrics-listen", c.MetricsListen}, {"--debug-listen", c.DebugListen},
	} {
		if a.addr == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(e.ctx, "tcp", a.addr)
		if err == nil {
			_ = l.Close()
			e.ok(a.addr + " is free")
			continue
		}
		if a.flag == "--listen" && e.serves(localURL(a.addr, c.TLS())) == nil {
			e.ok("a Parley server listens on " + a.addr)
			continue
		}
		if a.flag != "--listen" && taken(err) {
			e.ok(a.addr + " is in use, perhaps by a running server")
			continue
		}
		do := "choose another with " + a.flag
		if taken(err) {
			do = "stop the program that uses it, or " + do
		} else if runtime.GOOS == "linux" {
			do += "; ports below 1024 need CAP_NET_BIND_SERVICE"
		}
		e.fail("cannot listen on "+a.addr+": "+err.Error(), do)
	}
}
