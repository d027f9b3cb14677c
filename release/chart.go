package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// chart packs the Helm chart, for this version of the chart and of the image.
func (r *release) chart() error {
	dir := filepath.Join(r.root, "examples/kubernetes/chart")
	var entries []entry
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		if name == "Chart.yaml" {
			content = bytes.ReplaceAll(content, []byte("ersion: 0.1.0\n"), []byte("ersion: "+r.version+"\n")) // version and appVersion
		}
		entries = append(entries, entry{name: "anteroom/" + filepath.ToSlash(name), mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return err
	}
	return r.write("anteroom_"+r.version+"_chart.tgz", func(w io.Writer) error { return r.writeTarGz(w, entries) })
}
