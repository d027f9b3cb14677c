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
	entries, err := folder(filepath.Join(r.root, "examples/kubernetes/chart"), "anteroom/")
	if err != nil {
		return err
	}
	for i := range entries {
		if e := &entries[i]; e.name == "anteroom/Chart.yaml" {
			e.content = bytes.ReplaceAll(e.content, []byte("ersion: 0.1.0\n"), []byte("ersion: "+r.version+"\n")) // version and appVersion
		}
	}
	return r.write("anteroom_"+r.version+"_chart.tgz", func(w io.Writer) error { return r.writeTarGz(w, entries) })
}

// folder returns the files below a folder, with a prefix before their names.
func folder(dir, prefix string) (entries []entry, err error) {
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		entries = append(entries, entry{name: prefix + filepath.ToSlash(name), mode: 0o644, content: content})
		return err
	})
	return entries, err
}
