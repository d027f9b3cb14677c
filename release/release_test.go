package main

import (
	"crypto/sha256"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
)

// makeRelease runs all steps that pack, with a few bytes in the place of Anteroom, and returns the sums of the files.
func makeRelease(t *testing.T) map[string][32]byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "1.2.3-rc.1", time: time.Unix(1_700_000_000, 0).UTC(), root: root, out: t.TempDir(), work: t.TempDir(), pages: t.TempDir()}
	for _, file := range []string{"man/anteroom.1", "completions/anteroom.bash", "completions/anteroom.fish", "completions/_anteroom"} {
		write(t, filepath.Join(r.pages, file), []byte(file))
	}
	for _, to := range []target{{os: "linux", arch: "amd64"}, {os: "linux", arch: "arm64"}, {os: "darwin", arch: "arm64"}, {os: "windows", arch: "amd64"}} {
		to.binary = filepath.Join(r.work, to.os+to.arch, "anteroom")
		write(t, to.binary, []byte(to.os+to.arch))
		r.targets = append(r.targets, to)
	}
	for _, step := range []func() error{r.archives, r.packages, r.image, r.chart, func() error { return r.sbom(self) }, r.formula, r.checksums} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	sums := map[string][32]byte{}
	files, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sums[f.Name()] = sha256.Sum256(b)
	}
	return sums
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	first, second := makeRelease(t), makeRelease(t)
	for name, sum := range first {
		if second[name] != sum {
			t.Errorf("%s differs the second time", name)
		}
	}
	want := []string{
		"anteroom-1.2.3~rc.1-1.aarch64.rpm", "anteroom-1.2.3~rc.1-1.x86_64.rpm", "anteroom.rb", "anteroom_1.2.3-rc.1_chart.tgz", "anteroom_1.2.3-rc.1_darwin_arm64.tar.gz",
		"anteroom_1.2.3-rc.1_image.tar", "anteroom_1.2.3-rc.1_linux_amd64.tar.gz", "anteroom_1.2.3-rc.1_linux_arm64.tar.gz",
		"anteroom_1.2.3-rc.1_sbom.cdx.json", "anteroom_1.2.3-rc.1_windows_amd64.zip", "anteroom_1.2.3~rc.1_amd64.deb", "anteroom_1.2.3~rc.1_arm64.deb",
		"checksums.txt",
	}
	if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
		t.Errorf("files:\n%q\nwant\n%q", got, want)
	}
}

// The chart of a release is for the image of the release.
func TestChartHasTheVersion(t *testing.T) {
	r := &release{version: "1.2.3-rc.1", root: "..", out: t.TempDir()}
	if err := r.chart(); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("tar", "-xOzf", filepath.Join(r.out, "anteroom_1.2.3-rc.1_chart.tgz"), "anteroom/Chart.yaml").Output()
	if err != nil || strings.Count(string(text), "ersion: 1.2.3-rc.1\n") != 2 {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestOnlyVersionsAreReleased(t *testing.T) {
	for _, version := range []string{"", "v0.1.0", "0.1", "0.1.0.1", "01.1.0", "0.1.0+build", "next", "0.1.0 "} {
		if err := run(version, t.TempDir(), "..", nil); err == nil {
			t.Errorf("%q is taken for a version", version)
		}
	}
}

// "go install" refuses a whole module for one file that some system cannot name.
func TestGoInstallTakesEveryFile(t *testing.T) {
	files, err := exec.Command("git", "-C", "..", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(files), "\x00"), "\x00") {
		if err := module.CheckFilePath(name); err != nil {
			t.Error(err)
		}
	}
}
