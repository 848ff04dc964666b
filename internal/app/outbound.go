package app

import (
	"fmt"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/outbound"
)

// outboundFlag is the setting that error messages recommend for every kind of outbound request. The
// older --push-allow and --client-documents-allow add to it for their kind only.
const outboundFlag = "--outbound-allow"

// checkOutbound rejects bad lists of allowed addresses. The error names the flag.
func checkOutbound(cfg *config.Config) error {
	for _, s := range []struct {
		flag string
		list []string
	}{
		{outboundFlag, cfg.OutboundAllow},
		{"--push-allow", cfg.PushAllow},
		{"--client-documents-allow", cfg.ClientDocumentsAllow},
	} {
		if err := outbound.CheckAllow(s.list); err != nil {
			return fmt.Errorf("%s: %w", s.flag, err)
		}
	}
	return nil
}
