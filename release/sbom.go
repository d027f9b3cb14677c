package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbom lists the modules that a binary was built from, as the binary itself records them.
func (r *release) sbom(binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	components := []cyclonedx.Component{component("std", goVersion, "")}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		components = append(components, component(dep.Path, dep.Version, dep.Sum))
	}
	product := component(info.Main.Path, "v"+r.version, "")
	product.Type = cyclonedx.ComponentTypeApplication
	needs := make([]string, len(components))
	for i, c := range components {
		needs[i] = c.BOMRef
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format("2006-01-02T15:04:05Z"), Component: &product}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: product.BOMRef, Dependencies: &needs}}
	return r.write("anteroom_"+r.version+"_sbom.cdx.json", func(w io.Writer) error {
		return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	})
}

// component returns the component of a Go module; sum is that of go.sum, or empty.
func component(path, version, sum string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
	if hash, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(hash) > 0 {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(hash)}}
	}
	return c
}
