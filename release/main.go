// Command release makes everything that a release of Anteroom consists of, in one folder: archives,
// deb and rpm packages, an image, a Helm chart, a Homebrew formula, a list of what is inside (SBOM) and the checksums.
//
// The same commit and version give the same bytes: every time in the files is that of the commit, and nothing of the
// machine that builds goes in. scripts/release calls it.
package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// semantic is what a version looks like, without a leading "v": Debian, RPM, Go and Homebrew all order those alike.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// everywhere are the systems that a release is for.
const everywhere = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

// release is one version on its way into a folder.
type release struct {
	version string
	time    time.Time // of the commit
	root    string    // the repository
	out     string    // where the files go
	work    string    // what is built on the way
	pages   string    // folders man and completions
	targets []target
}

// target is a system that a release is for.
type target struct {
	os, arch string
	binary   string // file
}

func main() {
	version := flag.String("version", "", "`version` of the release, like 0.1.0")
	out := flag.String("out", "", "`folder` for the files; what was in it is removed")
	root := flag.String("root", "..", "`folder` of the repository")
	systems := flag.String("systems", everywhere, "systems to build for")
	flag.Parse()
	if err := run(*version, *out, *root, strings.Split(*systems, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, out, root string, systems []string) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("-version %q is no version: write it like 0.1.0 or 0.2.0-rc.1", version)
	}
	if out == "" {
		return errors.New("-out is missing: name the folder for the files")
	}
	r := release{version: version}
	var err error
	if r.root, err = filepath.Abs(root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	commit, err := r.git("log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	if r.time, err = time.Parse(time.RFC3339, commit); err != nil {
		return err
	}
	r.time = r.time.UTC()
	// Go's archive writers, nfpm and cobra read it.
	os.Setenv("SOURCE_DATE_EPOCH", fmt.Sprint(r.time.Unix()))
	if r.work, err = os.MkdirTemp("", "anteroom-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, system := range systems {
		name, arch, ok := strings.Cut(system, "/")
		if !ok {
			return fmt.Errorf("-systems: %q is not like linux/amd64", system)
		}
		r.targets = append(r.targets, target{os: name, arch: arch})
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"man pages and completions", r.makePages},
		{"binaries", r.build},
		{"archives", r.archives},
		{"deb and rpm", r.packages},
		{"image", r.image},
		{"chart", r.chart},
		{"SBOM", func() error { return r.sbom(r.targets[0].binary) }},
		{"formula", r.formula},
		{"checksums", r.checksums},
	} {
		began := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%-26s %5.1f s\n", step.name, time.Since(began).Seconds())
	}
	return nil
}

func (r *release) git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", r.root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w (a release is made from a checkout)", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// goCommand runs the go command in the repository, without what an environment may change about what comes out.
func (r *release) goCommand(env []string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "CGO_ENABLED=0"), env...)
	return cmd.Run()
}

// makePages has the test of the commands write them, which knows all commands.
func (r *release) makePages() error {
	r.pages = filepath.Join(r.work, "pages")
	return r.goCommand(nil, "test", "-count=1", "-vet=off", "-trimpath", "-ldflags=-s -w", "-run=^TestManPagesAndCompletions$", "./cmd/anteroom", "-pages="+r.pages)
}

func (r *release) build() error {
	for i := range r.targets {
		t := &r.targets[i]
		t.binary = filepath.Join(r.work, t.os+"-"+t.arch, "anteroom")
		if t.os == "windows" {
			t.binary += ".exe"
		}
		if err := r.goCommand([]string{"GOOS=" + t.os, "GOARCH=" + t.arch}, "build", "-trimpath", "-buildvcs=false",
			"-ldflags=-s -w -X main.version="+r.version, "-o", t.binary, "./cmd/anteroom"); err != nil {
			return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
		}
	}
	return nil
}

// linux returns the targets that packages and the image are made for.
func (r *release) linux() (ts []target) {
	for _, t := range r.targets {
		if t.os == "linux" {
			ts = append(ts, t)
		}
	}
	return ts
}

// write makes a file of the release.
func (r *release) write(name string, fill func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	return f.Close()
}

// checksums writes what "sha256sum --check" reads.
func (r *release) checksums() error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, f := range files {
		sum, err := sumOf(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Println(filepath.Join(r.out, f.Name()))
		fmt.Fprintf(&lines, "%s  %s\n", sum, f.Name())
	}
	return r.write("checksums.txt", func(w io.Writer) error {
		_, err := io.WriteString(w, lines.String())
		return err
	})
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// entry is a file or, without content, a folder of an archive or image.
type entry struct {
	name    string // slash-separated; folders end with a slash
	mode    int64
	owner   int // user and group
	content []byte
}

// writeTar writes the entries in their order, all as old as the commit.
func (r *release) writeTar(w io.Writer, entries []entry) error {
	tw := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: r.time, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(e.content); err != nil {
			return err
		}
	}
	return tw.Close()
}
