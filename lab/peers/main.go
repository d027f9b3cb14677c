// Command peers draws what `make bench-peers` measured: it reads the output of go test -bench and writes a picture.
//
//	go test -run '^$' -bench 'Peers$|Queued' -benchtime 1x ./gateway | go -C lab run ./peers >docs/peers.svg
package main

import (
	"bufio"
	"errors"
	"fmt"
	"image/color"
	"io"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom/internal/chart"
)

// bar is one server in a group of the picture. Its time is that of a role in a benchmark.
type bar struct {
	benchmark, role string
	name            string
	ours            bool
}

var groups = []struct {
	name string
	bars []bar
}{
	{"an admitted request, 1 kB from the origin", []bar{
		{"Peers/1kB", "nginx", "nginx", false},
		{"Peers/1kB", "haproxy", "HAProxy", false},
		{"Peers/1kB", "on", "Anteroom, with a room and a proof", true},
		{"Peers/1kB", "off", "Anteroom, outside every room", true},
		{"Peers/1kB", "fasthttp", "fasthttp, forwarding only", false},
		{"Peers/1kB", "reverseproxy", "httputil.ReverseProxy, tuned", false},
		{"Peers/1kB", "nethttp", "Anteroom, fast_path: false", true},
	}},
	{"a POST of 640 bytes", []bar{
		{"Peers/POST", "nginx", "nginx", false},
		{"Peers/POST", "haproxy", "HAProxy", false},
		{"Peers/POST", "on", "Anteroom", true},
	}},
	{"64 kB from the origin", []bar{
		{"Peers/64kB", "nginx", "nginx", false},
		{"Peers/64kB", "haproxy", "HAProxy", false},
		{"Peers/64kB", "on", "Anteroom", true},
	}},
	{"a queued visitor's page", []bar{
		{"Queued/page", "bare", "net/http, a body of the same size", false},
		{"Queued/page", "page", "Anteroom", true},
	}},
	{"a queued visitor's JSON", []bar{
		{"Queued/json", "bare", "net/http, a body of the same size", false},
		{"Queued/json", "json", "Anteroom", true},
	}},
}

func main() {
	log.SetFlags(0)
	took, err := read(os.Stdin)
	if err == nil {
		err = draw(os.Stdout, took)
	}
	if err != nil {
		log.Fatal("peers: ", err)
	}
}

// read returns the microseconds of a request by benchmark and role, "Peers/1kB nginx".
func read(r io.Reader) (map[string]float64, error) {
	took := make(map[string]float64)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i] // the processors
		}
		for i := 2; i+1 < len(words); i += 2 {
			role, ok := strings.CutSuffix(words[i+1], "-µs")
			if !ok {
				continue
			}
			v, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", words[0], err)
			}
			took[name+" "+role] = v
		}
	}
	return took, lines.Err()
}

// draw writes the picture. A server that was not measured is an error: the picture would say that there is none.
func draw(w io.Writer, took map[string]float64) error {
	const (
		width, left, right = 900, 290, 70
		row, gap           = 24, 34
		top                = 72
	)
	height, most := float64(top), 0.0
	var missing []error
	for _, g := range groups {
		height += gap + row*float64(len(g.bars))
		for _, b := range g.bars {
			v, ok := took[b.benchmark+" "+b.role]
			if !ok {
				missing = append(missing, fmt.Errorf("%s has no time of %s", b.benchmark, b.role))
			}
			most = max(most, v)
		}
	}
	if len(missing) > 0 {
		return errors.Join(missing...)
	}
	c, err := chart.New(width, int(height)+24, chart.SVG)
	if err != nil {
		return err
	}
	c.Head("Processor time of a request, in µs", "One core each, 64 connections kept open (32 in the queue), the same requests for all, medians of 25 alternating rounds; make bench-peers")
	y := float64(top)
	for _, g := range groups {
		c.Text(chart.Style{Size: 13, Bold: true, Color: chart.Dark}, chart.Point{20, y + 22}, g.name)
		y += gap
		for _, b := range g.bars {
			v := took[b.benchmark+" "+b.role]
			long := v / most * (width - left - right)
			c.Text(chart.Style{Size: 12, Color: chart.Dark, Bold: b.ours}, chart.Point{36, y + row*0.65}, b.name)
			c.Fill(colorOf(b), chart.Box(left, y+3, long, row-7))
			c.Text(chart.Style{Size: 12, Color: chart.Dark, Bold: b.ours}, chart.Point{left + long + 6, y + row*0.65}, strconv.FormatFloat(v, 'f', 1, 64))
			y += row
		}
	}
	return c.Encode(w, "Processor time of a request at Anteroom, nginx, HAProxy and Go's libraries, in microseconds")
}

func colorOf(b bar) color.NRGBA {
	if b.ours {
		return chart.Blue
	}
	return chart.Outline
}
