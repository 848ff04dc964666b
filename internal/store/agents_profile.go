package store

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
)

// profileRow is the stored form of a profile.
type profileRow struct {
	Skills           []skillRow   `json:"skills,omitempty"`
	Version          string       `json:"version,omitempty"`
	DocumentationURL string       `json:"documentation_url,omitempty"`
	IconURL          string       `json:"icon_url,omitempty"`
	Provider         *providerRow `json:"provider,omitempty"`
}

type skillRow struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
	InputModes  []string `json:"input_modes,omitempty"`
	OutputModes []string `json:"output_modes,omitempty"`
}

type providerRow struct {
	Organization string `json:"organization"`
	URL          string `json:"url"`
}

// encodeProfile encodes a profile for its column. The zero profile is the empty string.
func encodeProfile(p *agent.Profile) (string, error) {
	if reflect.DeepEqual(*p, agent.Profile{}) {
		return "", nil
	}
	row := profileRow{Version: p.Version, DocumentationURL: p.DocumentationURL, IconURL: p.IconURL}
	for _, s := range p.Skills {
		row.Skills = append(row.Skills, skillRow(s))
	}
	if p.Provider != (agent.Provider{}) {
		row.Provider = (*providerRow)(&p.Provider)
	}
	text, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("encode the profile: %w", err)
	}
	return string(text), nil
}

// decodeProfile is the inverse of encodeProfile.
func decodeProfile(text string) (agent.Profile, error) {
	var row profileRow
	if text == "" {
		return agent.Profile{}, nil
	}
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return agent.Profile{}, fmt.Errorf("decode the profile: %w", err)
	}
	p := agent.Profile{Version: row.Version, DocumentationURL: row.DocumentationURL, IconURL: row.IconURL}
	for _, s := range row.Skills {
		p.Skills = append(p.Skills, agent.Skill(s))
	}
	if row.Provider != nil {
		p.Provider = agent.Provider(*row.Provider)
	}
	return p, nil
}

// Profile implements agent.Store.
func (s Agents) Profile(ctx context.Context, org, id string) (agent.Profile, error) {
	return profileOf(ctx, s.eng, org, id)
}

func profileOf(ctx context.Context, q reader, org, id string) (agent.Profile, error) {
	var text string
	found := false
	err := each(ctx, q, func(r rows) error {
		found = true
		return r.Scan(&text)
	}, `SELECT profile FROM agents WHERE org_id = $1 AND id = $2`, org, id)
	switch {
	case err != nil:
		return agent.Profile{}, err
	case !found:
		return agent.Profile{}, errs.ErrNotFound
	}
	return decodeProfile(text)
}
