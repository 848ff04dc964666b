package cli

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/internal/app"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

var (
	durations = regexp.MustCompile(`^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w))+)$`)
	// longUnits are the parts of a duration that the time package does not know.
	longUnits = regexp.MustCompile(`(\d+\.?\d*|\.\d+)(w|d)`)
)

// parseDuration reads a duration such as 90s, 12h, 30d, 2w or 1d12h.
func parseDuration(s string) (time.Duration, error) {
	hours := longUnits.ReplaceAllStringFunc(s, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil {
			return part
		}
		unit := day
		if strings.HasSuffix(part, "w") {
			unit = week
		}
		return strconv.FormatFloat(n*unit.Hours(), 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(hours)
	if err != nil || !durations.MatchString(s) {
		return 0, fmt.Errorf("%q is not a duration such as 30s, 12h, 30d or 2w", s)
	}
	return d, nil
}

// decodeDuration makes every duration on the command line, in the environment and in the
// configuration file accept days and weeks.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var s string
	if err := ctx.Scan.PopValueInto("duration", &s); err != nil {
		return err
	}
	d, err := parseDuration(s)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

// expiry turns --expires into a time; zero, if it was not given, is never.
func expiry(d *time.Duration) (time.Time, error) {
	switch {
	case d == nil:
		return time.Time{}, nil
	case *d <= 0:
		return time.Time{}, usage("--expires must be more than 0; leave it out for a key that never expires")
	}
	return app.Now().Add(*d), nil
}

// seconds rounds up, so that a short time does not become zero.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
