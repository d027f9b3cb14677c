package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
)

// axe returns the script of the accessibility checker.
func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(npmPackages(t), "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// npmPackages returns the folder of what npm fetched, as package-lock.json pins it.
func npmPackages(t *testing.T) string {
	t.Helper()
	if err := fetchPackages(); err != nil {
		t.Fatal(err)
	}
	return "node_modules"
}

// fetchPackages has npm fetch the packages unless they are here already.
var fetchPackages = sync.OnceValue(func() error {
	type packed struct {
		Version         string            `json:"version"`
		DevDependencies map[string]string `json:"devDependencies"`
	}
	read := func(folder string) (p packed, err error) {
		b, err := os.ReadFile(filepath.Join(folder, "package.json"))
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		return p, err
	}
	wanted, err := read(".")
	if err != nil {
		return err
	}
	complete := true
	for name, version := range wanted.DevDependencies {
		have, err := read(filepath.Join("node_modules", name))
		complete = complete && err == nil && have.Version == version
	}
	if complete {
		return nil
	}
	npm, err := find("npm")
	if err != nil {
		return err
	}
	if out, err := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved").CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
})

// violation is one rule that a page breaks.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// violations runs every rule of the checker over the page; what is framed is a page of its own.
func (b *tab) violations(script string) []violation {
	b.t.Helper()
	if !eval[bool](b, "'axe' in window") {
		eval[bool](b, script+"\n;true")
	}
	result := eval[string](b, `axe.run(document, {resultTypes: ['violations'], iframes: false}).then(r => JSON.stringify({passes: r.passes.length, violations: r.violations}))`)
	var found struct {
		Passes     int         `json:"passes"`
		Violations []violation `json:"violations"`
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		b.t.Fatal(err)
	}
	if found.Passes < 10 {
		b.t.Fatalf("only %d rules passed: the checker did not see the page", found.Passes)
	}
	return found.Violations
}

// speaks sets the languages that the browser asks for.
func (b *tab) speaks(languages string) {
	b.t.Helper()
	do(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": languages}})
}

func TestPagesHaveNoAccessibilityViolation(t *testing.T) {
	t.Parallel()
	script := axe(t)
	languages := []string{"en-US", "ar-EG", "ja-JP"}
	var rooms strings.Builder
	for _, language := range languages {
		for _, p := range pages {
			rooms.WriteString(pageRoom(language, p.name, p.settings))
		}
		rooms.WriteString(pageRoom(language, "lottery", "lottery_percent: 1\n    total_active_users: 1\n    new_users_per_minute: 600"))
		// And with a brand.
		rooms.WriteString(pageRoom(language, "brand", pages[0].settings+"\n    page_site_name: Dawn\n    page_title: Spring\n    page_color: \"#00558c\"\n    page_color_dark: \"#7cc7ff\"\n    page_logo: R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"))
	}
	shown := slices.Clone(pages)
	for _, name := range []string{"brand", "lottery"} {
		shown = append(shown, pages[0])
		shown[len(shown)-1].name = name
	}
	g := startGate(t, rooms.String())
	b := open(t)
	for _, scheme := range []string{"light", "dark"} {
		do(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		for _, language := range languages {
			for _, p := range shown {
				path := "/" + language + "/" + p.name
				b.speaks(language)
				b.visit(g.url(path))
				b.waits()
				if got := eval[bool](b, "matchMedia('(prefers-color-scheme: dark)').matches"); got != (scheme == "dark") {
					t.Fatalf("the page is not shown in %s", scheme)
				}
				for _, v := range b.violations(script) {
					t.Errorf("%s, %s: %s (%s): %v", path, scheme, v.ID, v.Help, v.Nodes)
				}
			}
			// What a visitor can switch on, and the pages on which a visitor leaves or makes a link for another device.
			line := "/" + language + "/" + pages[0].name
			b.visit(g.url(line))
			eval[bool](b, "sessionStorage['anteroom-tell'] = 1, true")
			b.visit(g.url(line))
			b.becomes(10*time.Second, "document.querySelectorAll('label').length == 2")
			for _, query := range []string{"", "?__anteroom=leave", "?__anteroom=left", "?__anteroom=move"} {
				if query != "" {
					b.visit(g.url(line + query))
				}
				for _, v := range b.violations(script) {
					t.Errorf("%s%s, %s: %s (%s): %v", line, query, scheme, v.ID, v.Help, v.Nodes)
				}
			}
		}
	}
	// The checker finds what there is to find.
	eval[bool](b, `document.documentElement.removeAttribute('lang'), document.body.insertAdjacentHTML('beforeend', '<img src="data:,"><p style="color:#777;background:#777">grey</p>'), true`)
	if found := b.violations(script); len(found) < 3 {
		t.Errorf("a broken page has only these violations: %v", found)
	}
}

func TestPageFitsSmallScreensAndLargeText(t *testing.T) {
	t.Parallel()
	var rooms strings.Builder
	for _, language := range []string{"en-US", "de-DE", "ar-EG"} {
		rooms.WriteString(pageRoom(language, pages[0].name, pages[0].settings))
	}
	g := startGate(t, rooms.String())
	b := open(t)
	// 320 pixels are 1280 at 400 % (WCAG 1.4.10).
	do(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 320, Height: 568, DeviceScaleFactor: 2, Mobile: true})
	for _, language := range []string{"en-US", "de-DE", "ar-EG"} {
		b.speaks(language)
		b.visit(g.url(fmt.Sprintf("/%s/line", language)))
		b.waits()
		if w := eval[int](b, "document.documentElement.scrollWidth"); w > 320 {
			t.Errorf("%s: %d pixels wide, want at most 320", language, w)
		}
		if got := eval[string](b, "getComputedStyle(document.documentElement).direction"); (got == "rtl") != (language == "ar-EG") {
			t.Errorf("%s runs %s", language, got)
		}
	}
}

// isAccessible reports what axe finds on the page as it is, in light and in dark.
func (b *tab) isAccessible(script string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		do(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		for _, v := range b.violations(script) {
			b.t.Errorf("%s: %s (%s): %v", scheme, v.ID, v.Help, v.Nodes)
		}
	}
	do(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
}
