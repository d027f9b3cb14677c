package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser runs the image: the number that images without a system have agreed on for "nobody special".
const imageUser = 65532

// image writes an OCI archive with an image for each Linux: the binary and the roots of the web's certificates. The
// zone data is in the binary.
func (r *release) image() error {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file of certificates cannot say until when to trust one
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range r.linux() {
		binary, err := os.ReadFile(t.binary)
		if err != nil {
			return err
		}
		var content bytes.Buffer
		if err := r.writeTar(&content, []entry{
			{name: "etc/", mode: 0o755},
			{name: "etc/anteroom/", mode: 0o755},
			{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nanteroom:x:65532:\n")},
			{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\nanteroom:x:65532:65532:Anteroom:/var/lib/anteroom:/sbin/nologin\n")},
			{name: "etc/ssl/", mode: 0o755},
			{name: "etc/ssl/certs/", mode: 0o755},
			{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
			{name: "usr/", mode: 0o755},
			{name: "usr/bin/", mode: 0o755},
			{name: "usr/bin/anteroom", mode: 0o755, content: binary},
			{name: "var/", mode: 0o755},
			{name: "var/lib/", mode: 0o755},
			{name: "var/lib/anteroom/", mode: 0o700, owner: imageUser},
		}); err != nil {
			return err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return err
		}
		image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "release"}}); err != nil {
			return err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return err
		}
		if image, err = mutate.ConfigFile(image, r.imageConfig(t, config)); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}}})
	}
	// The archive names one image, which is another one on each system.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
		Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "localhost/anteroom:" + r.version},
	}})
	dir := filepath.Join(r.work, "image")
	if _, err := layout.Write(dir, named); err != nil {
		return err
	}
	entries, err := folder(dir, "")
	if err != nil {
		return err
	}
	return r.write("anteroom_"+r.version+"_image.tar", func(w io.Writer) error { return r.writeTar(w, entries) })
}

// imageConfig returns the configuration with how the image runs. It names the same layers.
func (r *release) imageConfig(t target, config *v1.ConfigFile) *v1.ConfigFile {
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = t.os, t.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{
		User:         "65532:65532",
		Entrypoint:   []string{"/usr/bin/anteroom"},
		Cmd:          []string{"run", "--config", "/etc/anteroom/anteroom.yaml"},
		Env:          []string{"PATH=/usr/bin", "ANTEROOM_DATA=/var/lib/anteroom"},
		WorkingDir:   "/var/lib/anteroom",
		Volumes:      map[string]struct{}{"/var/lib/anteroom": {}},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "Anteroom",
			"org.opencontainers.image.description": "Virtual waiting room in front of a web application",
			"org.opencontainers.image.source":      "https://github.com/anteroom/anteroom",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     r.version,
		},
	}
	return config
}
