package web

import (
	"net/http"
	"strconv"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
)

func (p *Pages) mountSettings() {
	p.orgPages(map[string]handler{
		"GET /settings":               (*visit).settingsPage,
		"POST /settings/friction":     (*visit).setFriction,
		"GET /settings/deliveries":    (*visit).deliveriesPage,
		"POST /settings/deliveries":   (*visit).retryDelivery,
		"GET /friction":               (*visit).frictionPage,
		"GET /friction/{fingerprint}": (*visit).frictionOnePage,
	})
}

// settingsView is the page of the org's settings.
type settingsView struct {
	Threshold string // as typed
	Files     bool   // reports file proposals at all
	Default   int
	Min, Max  int
}

func (v *visit) settingsPage() error { return v.showSettings(nil, nil) }

// showSettings shows the settings; typed is the threshold that was refused.
func (v *visit) showSettings(typed *settingsView, problem error) error {
	a, err := v.admin(identity.ManageFriction)
	if err != nil {
		return err
	}
	out := settingsView{}
	if typed != nil {
		out = *typed
	} else {
		n, err := v.Frictions.Threshold(v.r.Context(), a)
		if err != nil {
			return err
		}
		out.Files, out.Threshold = n != friction.Off, strconv.Itoa(n)
		if !out.Files {
			out.Threshold = strconv.Itoa(friction.DefaultThreshold)
		}
	}
	out.Default, out.Min, out.Max = friction.DefaultThreshold, friction.MinThreshold, friction.MaxThreshold
	return renderForm(v, http.StatusOK, "settings", "Settings", out, problem)
}

// setFriction changes how many reports file a proposal.
func (v *visit) setFriction() error {
	a, err := v.admin(identity.ManageFriction)
	if err != nil {
		return v.audited(friction.ThresholdSet, "", err)
	}
	typed := settingsView{Files: v.value("files") != "", Threshold: v.value("threshold")}
	n, said := friction.Off, "Reported friction files no proposals from now on."
	if typed.Files {
		if n, err = strconv.Atoi(typed.Threshold); err != nil || n == friction.Off {
			n = -1 // which no threshold is
		}
		said = "From now on " + plural(int64(n), "report files", "reports file") + " a proposal. Earlier reports count."
	}
	if err := friction.ValidateThreshold(n); err != nil {
		err = fieldError("threshold", "must be a number from "+strconv.Itoa(friction.MinThreshold)+" to "+strconv.Itoa(friction.MaxThreshold))
		return v.showSettings(&typed, v.audited(friction.ThresholdSet, "", err))
	}
	if err := v.Frictions.SetThreshold(v.r.Context(), a, n); err != nil {
		return v.showSettings(&typed, v.audited(friction.ThresholdSet, "", err))
	}
	return v.done(v.base()+"/settings", said)
}
