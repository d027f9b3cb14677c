package load

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim/demo/crowd"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

const (
	originFile   = "origin.jsonl"
	visitorsFile = "visitors.jsonl"
	runName      = "run.json"
	reportFile   = "report.txt"
	figureFile   = "figure.svg"
	configFile   = "gateway.yaml"
	gatewayLog   = "gateway.log"
	dataDir      = "data"
)

// runFile is run.json.
type runFile struct {
	Active          int             `json:"active"`
	PerMinute       int             `json:"per_minute"`
	SessionDuration time.Duration   `json:"session_duration_ns"`
	Pass            time.Duration   `json:"pass_ns,omitempty"` // of the passes that an edge verifies; 0: there is no edge
	Outages         []judge.Outage  `json:"outages"`
	Failures        []crowd.Failure `json:"failures"`
}

func writeRun(dir string, f runFile, visitors []crowd.Visitor) error {
	b, err := json.MarshalIndent(f, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, runName), b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return create(filepath.Join(dir, visitorsFile), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		for _, v := range visitors {
			if err := enc.Encode(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rejudge judges what a run left in dir, writes the report and the figure there, and the
// report to out, too.
func Rejudge(dir string, out io.Writer) (judge.Report, error) {
	c, err := read(dir)
	if err != nil {
		return judge.Report{}, fmt.Errorf("load: %w", err)
	}
	r := c.Judge()
	err = create(filepath.Join(dir, reportFile), func(w io.Writer) error { return r.WriteTable(io.MultiWriter(w, out)) })
	if err == nil {
		err = create(filepath.Join(dir, figureFile), r.WriteSVG)
	}
	return r, err
}

func read(dir string) (judge.Case, error) {
	var c judge.Case
	b, err := os.ReadFile(filepath.Join(dir, runName))
	if err != nil {
		return c, err
	}
	var f runFile
	if err := json.Unmarshal(b, &f); err != nil {
		return c, fmt.Errorf("%s: %w", filepath.Join(dir, runName), err)
	}
	c = judge.Case{Active: f.Active, PerMinute: f.PerMinute, SessionDuration: f.SessionDuration, Outages: f.Outages, Failures: f.Failures}

	log, err := os.Open(filepath.Join(dir, originFile))
	if err != nil {
		return c, err
	}
	defer log.Close()
	if c.Requests, err = shop.ReadLog(log); err != nil {
		return c, err
	}
	if f.Pass > 0 {
		passed(c.Requests, f.Pass)
	}
	people, err := os.Open(filepath.Join(dir, visitorsFile))
	if err != nil {
		return c, err
	}
	defer people.Close()
	d := json.NewDecoder(bufio.NewReaderSize(people, 1<<20))
	for {
		var v crowd.Visitor
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return c, nil
		} else if err != nil {
			return c, fmt.Errorf("%s, visitor %d: %w", people.Name(), len(c.Visitors)+1, err)
		}
		c.Visitors = append(c.Visitors, v)
	}
}

// passed gives the requests that came straight from an edge, and so without a proof, to the session that their visitor had with the
// gateway, as long as a pass of it may be valid. Later ones stay without a session, which the judge does not forgive.
func passed(requests []shop.Request, pass time.Duration) {
	type known struct {
		session string
		until   int64 // µs
	}
	sessions := map[string]known{}
	for i := range requests {
		q := &requests[i]
		if q.Session != "" {
			sessions[q.Visitor] = known{q.Session, q.Seen + (pass + anteroom.PassSkew).Microseconds()}
		} else if k := sessions[q.Visitor]; q.Visitor != "" && q.Seen <= k.until {
			q.Session = k.session
		}
	}
}

func create(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	b := bufio.NewWriter(file)
	if err = cmp.Or(write(b), b.Flush(), file.Close()); err != nil {
		return fmt.Errorf("load: %s: %w", name, err)
	}
	return nil
}
