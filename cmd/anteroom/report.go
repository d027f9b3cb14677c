package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func reportCommand() *cobra.Command {
	var event, from, to, format string
	var number int
	cmd := &cobra.Command{
		Use: "report ROOM FILE", Short: "Write a post-event report to a file (- for standard output)", Args: names("ROOM", "FILE"),
		Long: `Write a report about a room to a file that you can keep, print and send: how many visitors waited
and were admitted, how long they waited, whether the limits and the order were kept, the shuffles,
and who changed what. FILE ends in .html, .csv or .json, or is - for standard output with --format.
Without --event, the report covers the last 24 hours, or the time from --from to --to.`,
		Example: `  anteroom report example.com/checkout drop.html --event drop
  anteroom report example.com/checkout day.csv --from 2026-11-27T00:00:00Z --to 2026-11-28T00:00:00Z`,
	}
	f := cmd.Flags()
	f.StringVar(&event, "event", "", "report on the event with this `name`, from its prequeue to its end")
	f.IntVar(&number, "number", 0, "`number` of the event's occurrence, from 0 (default the latest that has begun)")
	f.StringVar(&from, "from", "", "start of the report, a `time` like 2026-11-27T09:00:00Z (default 24 hours before --to)")
	f.StringVar(&to, "to", "", "end of the report, a `time` (default now)")
	f.StringVar(&format, "format", "", "html, csv or json (default: the extension of FILE)")
	r := remoteFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		room, file := args[0], args[1]
		format := cmp.Or(format, strings.TrimPrefix(filepath.Ext(file), "."))
		if format != "html" && format != "csv" && format != "json" {
			return usageError{fmt.Errorf("unknown report format for %q: end the name in .html, .csv or .json, or use --format", file)}
		}
		if event != "" && (from != "" || to != "") {
			return usageError{fmt.Errorf("--event sets the start and the end: use either --event, or --from and --to")}
		}
		q := url.Values{"format": {format}}
		for name, value := range map[string]string{"from": from, "to": to} {
			if value != "" {
				q.Set(name, value)
			}
		}
		if f.Changed("number") {
			q.Set("number", strconv.Itoa(number))
		}
		c, err := r.client()
		if err != nil {
			return err
		}
		rm, err := findRoom(cmd.Context(), c, room)
		if err != nil {
			return advise(err)
		}
		path := rm.of(ours)
		if event != "" {
			e, err := findEvent(cmd.Context(), c, rm, event)
			if err != nil {
				return advise(err)
			}
			path += "/events/" + url.PathEscape(e.ID)
		}
		return r.fetched(cmd, "Report", file, func(w io.Writer) error {
			if format != "json" {
				return download(cmd.Context(), c, path+"/report", q, w)
			}
			var made json.RawMessage
			if err := c.Do(cmd.Context(), http.MethodGet, path+"/report", q, nil, &made); err != nil {
				return err
			}
			return printJSON(w, made)
		})
	}
	return cmd
}
