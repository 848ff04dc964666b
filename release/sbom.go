package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// The parts of a CycloneDX 1.6 document that are used.
type (
	sbom struct {
		Schema       string          `json:"$schema"`
		BOMFormat    string          `json:"bomFormat"`
		SpecVersion  string          `json:"specVersion"`
		SerialNumber string          `json:"serialNumber"`
		Version      int             `json:"version"`
		Metadata     sbomMetadata    `json:"metadata"`
		Components   []sbomComponent `json:"components"`
		Dependencies []sbomUses      `json:"dependencies"`
	}
	sbomMetadata struct {
		Timestamp string        `json:"timestamp"`
		Component sbomComponent `json:"component"`
	}
	sbomComponent struct {
		Type       string         `json:"type"`
		Ref        string         `json:"bom-ref"`
		Name       string         `json:"name"`
		Version    string         `json:"version"`
		Scope      string         `json:"scope,omitempty"`
		Hashes     []sbomHash     `json:"hashes,omitempty"`
		PURL       string         `json:"purl"`
		Properties []sbomProperty `json:"properties,omitempty"`
	}
	sbomHash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	sbomProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	sbomUses struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// writeSBOM writes the bill of materials of a binary: the modules that the linker recorded in it.
func (r *release) writeSBOM(p platform, binary string) error {
	doc, err := r.bill(binary)
	if err != nil {
		return err
	}
	return writeFile(r.path(p.name()+".cdx.json"), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(doc)
	})
}

func (r *release) bill(binary string) (*sbom, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	body, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	main := library(info.Main.Path, r.version)
	main.Type, main.Scope = "application", ""
	main.Hashes = []sbomHash{{"SHA-256", fmt.Sprintf("%x", sum)}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			main.Properties = append(main.Properties, sbomProperty{"go:" + s.Key, s.Value})
		}
	}
	doc := &sbom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1,
		SerialNumber: serialNumber(sum), Metadata: sbomMetadata{r.when.Format(time.RFC3339), main},
		Components: []sbomComponent{library("std", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, dep := range info.Deps { // sorted by path
		if dep.Replace != nil {
			dep = dep.Replace
		}
		c := library(dep.Path, dep.Version)
		if dep.Sum != "" {
			c.Properties = []sbomProperty{{"go:sum", dep.Sum}}
		}
		doc.Components = append(doc.Components, c)
	}
	uses := sbomUses{Ref: main.Ref}
	for _, c := range doc.Components {
		uses.DependsOn = append(uses.DependsOn, c.Ref)
		doc.Dependencies = append(doc.Dependencies, sbomUses{Ref: c.Ref})
	}
	doc.Dependencies = append([]sbomUses{uses}, doc.Dependencies...)
	return doc, nil
}

func library(path, version string) sbomComponent {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return sbomComponent{Type: "library", Ref: purl, Name: path, Version: version, Scope: "required", PURL: purl}
}

// serialNumber makes a UUID (version 8) of a hash, so that the same binary has the same one.
func serialNumber(sum [sha256.Size]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
