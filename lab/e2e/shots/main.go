// Command shots starts the demo, logs in to its dashboard, and writes a picture of every page: on a desktop
// and on a phone, in light and in dark. "make shots" is the way to call it.
//
// The pages are those that the dashboard's own navigation leads to, so that a new one is not
// forgotten.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/anteroom/anteroom/internal/walltime"
)

func main() {
	binary := flag.String("binary", "../bin/anteroom", "the program")
	out := flag.String("out", "../shots", "folder for the pictures")
	settle := flag.Duration("surge", 25*time.Second, "how long the demo's crowd comes before the first picture")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := shots(ctx, *binary, *out, *settle); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// screen is what somebody looks at.
type screen struct {
	name          string
	width, height int64
	scale         float64
	mobile        bool
}

var (
	screens = []screen{{"desktop", 1280, 800, 1, false}, {"phone", 360, 740, 2, true}}
	schemes = []string{"light", "dark"}
	login   = regexp.MustCompile(`http://\S+/#token=\S+`)
	// loaded says that a page has what it shows: no placeholder, no bar of progress.
	loaded = `document.querySelector('main h1') && !document.querySelector('.skeleton, [aria-busy=true]')`
)

func shots(ctx context.Context, binary, out string, settle time.Duration) error {
	demo := exec.CommandContext(ctx, binary, "demo", "--listen", "127.0.0.1:0", "--admin", "localhost:0")
	demo.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ANTEROOM_API_TOKEN") }) // it makes one of its own
	demo.Cancel = func() error { return demo.Process.Signal(os.Interrupt) }
	demo.Stderr = os.Stderr
	said, err := demo.StdoutPipe()
	if err != nil {
		return err
	}
	if err := demo.Start(); err != nil {
		return err
	}
	defer demo.Wait()
	defer demo.Process.Signal(os.Interrupt)
	var address string
	lines := bufio.NewScanner(said)
	for address == "" && lines.Scan() {
		address = login.FindString(lines.Text())
	}
	if address == "" {
		return errors.New("the demo has not said where its dashboard is")
	}
	go func() {
		for lines.Scan() { // it goes on telling
		}
	}()

	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		return errors.New("chromium is missing: install it, or run scripts/test install")
	}
	alloc, end := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true))
	defer end()
	tab, close := chromedp.NewContext(alloc)
	defer close()

	if err := chromedp.Do(tab, chromedp.Navigate(address)); err != nil {
		return err
	}
	base, err := url.Parse(address)
	if err != nil {
		return err
	}
	root := "http://" + base.Host
	fmt.Printf("the demo fills its rooms: %v\n", settle)
	if !walltime.Sleep(ctx, settle) {
		return ctx.Err()
	}
	pages, err := follow(tab, root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, s := range screens {
		err := call(tab, func(c context.Context) error {
			_, err := chromedp.Call(c, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: s.scale, Mobile: s.mobile})
			return err
		})
		if err != nil {
			return err
		}
		for _, scheme := range schemes {
			err := call(tab, func(c context.Context) error {
				_, err := chromedp.Call(c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				return err
			})
			if err != nil {
				return err
			}
			for _, p := range pages {
				file := filepath.Join(out, fmt.Sprintf("%s-%s-%s.png", nameOf(p), s.name, scheme))
				if err := shoot(tab, root+p, file); err != nil {
					return fmt.Errorf("%s: %w", p, err)
				}
				fmt.Println(file)
			}
		}
	}
	return nil
}

// follow returns the paths of all pages: those of the navigation, and those of a room.
func follow(tab context.Context, root string) ([]string, error) {
	links := func(path, selector string) ([]string, error) {
		if err := visit(tab, root+path); err != nil {
			return nil, err
		}
		return chromedp.Run(tab, chromedp.Evaluate[[]string](fmt.Sprintf(`[...new Set([...document.querySelectorAll(%q)].map(a => new URL(a.href)).filter(u => u.origin == location.origin).map(u => u.pathname))]`, selector)))
	}
	pages, err := links("/", "nav a[href]")
	if err != nil {
		return nil, err
	}
	rooms, err := links("/", `main a[href*="/rooms/"]`)
	if err != nil {
		return nil, err
	}
	if len(rooms) == 0 {
		return nil, errors.New("the overview has no room")
	}
	of, err := links(rooms[0], `a[href^="`+rooms[0]+`"]`)
	if err != nil {
		return nil, err
	}
	pages = slices.DeleteFunc(pages, func(p string) bool { return strings.HasPrefix(p, "/rooms/") })
	all := slices.Concat([]string{"/", "/new"}, pages, rooms[:1], of)
	if len(rooms) > 1 {
		all = append(all, rooms[1]+"/events") // the demo's sales are in its second room
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// nameOf is the name of a page's pictures.
func nameOf(path string) string {
	if parts := strings.Split(strings.Trim(path, "/"), "/"); parts[0] == "rooms" && len(parts) >= 3 {
		name := "room"
		if parts[2] != "shop" { // the demo's first
			name = parts[2]
		}
		return strings.Join(append([]string{name}, parts[3:]...), "-")
	} else if parts[0] != "" {
		return strings.Join(parts, "-")
	}
	return "overview"
}

func shoot(tab context.Context, address, file string) error {
	if err := visit(tab, address); err != nil {
		return err
	}
	var png []byte
	err := call(tab, func(c context.Context) error {
		got, err := chromedp.Call(c, page.CaptureScreenshot, page.CaptureScreenshotParams{})
		png = got.Data
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644)
}

// visit opens a page and waits until it shows what it has, and has drawn it.
func visit(tab context.Context, address string) error {
	return call(tab, func(c context.Context) error {
		if err := chromedp.Do(c, chromedp.Navigate(address)); err != nil {
			return err
		}
		const shown = `new Promise(r => { const look = () => (%s) ? setTimeout(() => requestAnimationFrame(() => r(true)), 1500) : setTimeout(look, 50); look() })`
		_, err := chromedp.Run(c, chromedp.Evaluate[bool](fmt.Sprintf(shown, loaded), chromedp.EvalAwaitPromise))
		return err
	})
}

func call(tab context.Context, fn func(context.Context) error) error {
	c, cancel := context.WithTimeout(tab, 30*time.Second)
	defer cancel()
	return fn(c)
}
