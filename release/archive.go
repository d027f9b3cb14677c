package main

import (
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

// name is the name of a target's archive, without its ending.
func (r *release) name(t target) string {
	return fmt.Sprintf("anteroom_%s_%s_%s", r.version, t.os, t.arch)
}

func archiveOf(t target) string {
	if t.os == "windows" {
		return ".zip"
	}
	return ".tar.gz"
}

// archives packs each binary with licence, README, man pages and completions.
func (r *release) archives() error {
	var docs []entry
	add := func(name, file string, mode int64) error {
		content, err := os.ReadFile(file)
		docs = append(docs, entry{name: name, mode: mode, content: content})
		return err
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		if err := add(name, filepath.Join(r.root, name), 0o644); err != nil {
			return err
		}
	}
	err := filepath.WalkDir(r.pages, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(r.pages, file)
		if err != nil {
			return err
		}
		return add(filepath.ToSlash(name), file, 0o644)
	})
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		binary, err := os.ReadFile(t.binary)
		if err != nil {
			return err
		}
		entries := append([]entry{{name: filepath.Base(t.binary), mode: 0o755, content: binary}}, docs...)
		for i := range entries {
			entries[i].name = r.name(t) + "/" + entries[i].name
		}
		pack := r.writeTarGz
		if t.os == "windows" {
			pack = r.writeZip
		}
		if err := r.write(r.name(t)+archiveOf(t), func(w io.Writer) error { return pack(w, entries) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) writeTarGz(w io.Writer, entries []entry) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := r.writeTar(z, entries); err != nil {
		return err
	}
	return z.Close()
}

func (r *release) writeZip(w io.Writer, entries []entry) error {
	z := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(fs.FileMode(e.mode))
		f, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.content); err != nil {
			return err
		}
	}
	return z.Close()
}

// archive is what the formula says about one.
type archive struct{ Arch, File, Sum string }

// formula writes the formula for Homebrew, on macOS and Linux.
func (r *release) formula() error {
	text, err := template.ParseFiles(filepath.Join(r.root, "release/files/anteroom.rb"))
	if err != nil {
		return err
	}
	archives := map[string][]archive{}
	for _, t := range r.targets {
		if t.os == "windows" {
			continue
		}
		a := archive{Arch: t.arch, File: r.name(t) + archiveOf(t)}
		if a.Sum, err = sumOf(filepath.Join(r.out, a.File)); err != nil {
			return err
		}
		archives[t.os] = append(archives[t.os], a)
	}
	return r.write("anteroom.rb", func(w io.Writer) error {
		return text.Execute(w, map[string]any{"Version": r.version, "Archives": archives})
	})
}
