package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

func eventCommand() *cobra.Command {
	cmd := group("event", "Manage events: scheduled times at which a room has other settings")
	cmd.Example = `  anteroom event create example.com/checkout drop --prequeue 2030-11-29T09:30:00Z \
      --start 2030-11-29T10:00:00Z --end 2030-11-29T12:00:00Z --shuffle
  anteroom event create example.com/checkout early --start "2030-11-29 10:00" --end "2030-11-29 12:00" --tz Europe/Berlin
  anteroom event repeat example.com/checkout drop --every week --times 10
  anteroom event checklist example.com/checkout drop
  anteroom event shuffle example.com/checkout drop --out shuffle`
	r := remoteFlags(cmd)
	cmd.AddCommand(eventList(r), eventGet(r), eventCreate(r), eventSet(r), eventDelete(r), eventRepeat(r), eventChecklist(r), eventShuffle(r))
	return cmd
}

// event is what the command line needs to know of an event.
type event struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Prequeue  *string `json:"prequeue_start_time"`
	Start     string  `json:"event_start_time"`
	End       string  `json:"event_end_time"`
	Shuffle   bool    `json:"shuffle_at_event_start"`
	Suspended bool    `json:"suspended"`
}

func findEvent(ctx context.Context, c *client.Client, rm room, name string) (event, error) {
	events, err := every[event](ctx, c, rm.of(published)+"/events", nil)
	if err != nil {
		return event{}, err
	}
	e, err := pick(events, "event", name, func(e event) (id, name string) { return e.ID, e.Name })
	if anteroom.KindOf(err) == anteroom.NotFound {
		err = anteroom.Errorf(anteroom.NotFound, "room %s has no event %q; anteroom event list %s shows all", rm, name, rm)
	}
	return e, err
}

// onEvent makes a command whose first arguments are a room and an event.
func onEvent[T any](r *remote, cmd *cobra.Command, do func(context.Context, *client.Client, room, event) (T, error), show func(io.Writer, room, event, T) error) *cobra.Command {
	cmd.Args = names("ROOM", "EVENT")
	var e event
	return on(r, cmd, findRoom, func(ctx context.Context, c *client.Client, rm room, args []string) (result T, err error) {
		if e, err = findEvent(ctx, c, rm, args[0]); err != nil {
			return result, err
		}
		return do(ctx, c, rm, e)
	}, func(w io.Writer, rm room, result T) error { return show(w, rm, e, result) })
}

func (e event) of(api string, rm room) string { return rm.of(api) + "/events/" + url.PathEscape(e.ID) }

func eventList(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "list ROOM", Short: "List the events of a room", Args: names("ROOM")}, findRoom,
		func(ctx context.Context, c *client.Client, rm room, _ []string) ([]event, error) {
			return every[event](ctx, c, rm.of(published)+"/events", nil)
		}, func(w io.Writer, _ room, events []event) error {
			t := newTable(w, "EVENT", "PREQUEUE", "START", "END", "SHUFFLE", "SUSPENDED", "ID")
			for _, e := range events {
				t.row(e.Name, schema.Value(e.Prequeue), e.Start, e.End, e.Shuffle, e.Suspended, e.ID)
			}
			return t.Flush()
		})
}

func eventGet(r *remote) *cobra.Command {
	var inForce bool
	cmd := &cobra.Command{Use: "get ROOM EVENT", Short: "Show the settings of an event"}
	cmd.Flags().BoolVar(&inForce, "details", false, "include the settings inherited from the room")
	return onEvent(r, cmd, func(ctx context.Context, c *client.Client, rm room, e event) (o map[string]any, err error) {
		path := e.of(published, rm)
		if inForce {
			path += "/details"
		}
		return o, c.Do(ctx, http.MethodGet, path, nil, nil, &o)
	}, func(w io.Writer, rm room, _ event, o map[string]any) error { return showMembers(w, rm, o) })
}

func eventCreate(r *remote) *cobra.Command {
	cmd := &cobra.Command{Use: "create ROOM NAME", Short: "Schedule an event; it inherits settings without a flag from the room", Args: names("ROOM", "NAME")}
	given, check := settingFlags(cmd, anteroom.EventFields()), forceFlag(cmd)
	return on(r, cmd, findRoom, func(ctx context.Context, c *client.Client, rm room, args []string) (o map[string]any, err error) {
		body, err := given()
		if err != nil {
			return nil, err
		}
		if err := check(body); err != nil {
			return nil, err
		}
		body["name"] = args[0]
		return o, c.Do(ctx, http.MethodPost, rm.of(published)+"/events", nil, body, &o)
	}, func(w io.Writer, rm room, o map[string]any) error {
		_, err := fmt.Fprintf(w, "Event %s of room %s has the id %s.\n", shown(o["name"]), shown(rm.String()), shown(o["id"]))
		return err
	})
}

func eventSet(r *remote) *cobra.Command {
	cmd := &cobra.Command{Use: "set ROOM EVENT", Short: "Change the settings named by the flags"}
	given, rename, check := settingFlags(cmd, anteroom.EventFields()), renameFlag(cmd), forceFlag(cmd)
	var inherit []string
	cmd.Flags().StringSliceVar(&inherit, "inherit", nil, "settings to inherit from the room again, by flag name")
	return onEvent(r, cmd, func(ctx context.Context, c *client.Client, rm room, e event) (o map[string]any, err error) {
		body, err := given()
		if err != nil {
			return nil, err
		}
		if err := check(body); err != nil {
			return nil, err
		}
		rename(body)
		all := settings(anteroom.EventFields())
		for _, name := range inherit {
			i := slices.IndexFunc(all, func(s setting) bool { return s.flag == name && s.Pointer })
			if i < 0 {
				return nil, usageError{fmt.Errorf("--inherit %s: events do not inherit this setting; see %s --help", name, cmd.CommandPath())}
			}
			body[all[i].Key] = nil
		}
		if len(body) == 0 {
			return nil, usageError{fmt.Errorf("no flag says what to change; see %s --help", cmd.CommandPath())}
		}
		return o, c.Do(ctx, http.MethodPatch, e.of(published, rm), nil, body, &o)
	}, func(w io.Writer, _ room, e event, _ map[string]any) error {
		_, err := fmt.Fprintf(w, "Event %s changed.\n", shown(e.Name))
		return err
	})
}

// forceFlag adds --force and returns what refuses an event that has already ended, without it.
func forceFlag(cmd *cobra.Command) func(body map[string]any) error {
	force := cmd.Flags().Bool("force", false, "accept an end in the past")
	return func(body map[string]any) error {
		end, given := body["event_end_time"].(string)
		if !given || *force {
			return nil
		}
		if t, err := anteroom.Stamp(end).Time(); err == nil && t.Before(time.Now()) {
			return usageError{fmt.Errorf("the event ends in the past, at %s: check --start and --end, or pass --force to confirm", end)}
		}
		return nil
	}
}

// localTime returns a time of the command line as RFC 3339. One without an offset is by the clock of tz, and may neither
// be skipped nor occur twice there when the clock is changed.
func localTime(flag, text, tz string) (string, error) {
	if _, err := anteroom.Stamp(text).Time(); err == nil {
		return text, nil
	}
	place, err := time.LoadLocation(tz)
	if err != nil {
		return "", usageError{fmt.Errorf("unknown time zone %q for --tz: use a name like Europe/Berlin", tz)}
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		t, err := time.ParseInLocation(layout, text, place)
		if err != nil || tz == "" {
			continue
		}
		if t.Format(layout) != text {
			return "", usageError{fmt.Errorf("invalid time %q for --%s: the clock of %s skips it", text, flag, tz)}
		}
		for _, change := range []time.Duration{-time.Hour, -time.Hour / 2, time.Hour / 2, time.Hour} {
			if other := t.Add(change); other.Format(layout) == text {
				return "", usageError{fmt.Errorf("invalid time %q for --%s: it occurs twice in %s; use %s or %s", text, flag, tz, t.Format(time.RFC3339), other.Format(time.RFC3339))}
			}
		}
		return t.Format(time.RFC3339), nil
	}
	return "", usageError{fmt.Errorf("invalid time %q for --%s: use RFC 3339 (2026-11-27T10:00:00Z) or a local time (2026-11-27 10:00) with --tz", text, flag)}
}

func eventDelete(r *remote) *cobra.Command {
	return onEvent(r, &cobra.Command{Use: "delete ROOM EVENT", Short: "Delete an event; if it is active, it ends"},
		func(ctx context.Context, c *client.Client, rm room, e event) (o map[string]any, err error) {
			return o, c.Do(ctx, http.MethodDelete, e.of(published, rm), nil, nil, &o)
		}, func(w io.Writer, _ room, e event, _ map[string]any) error {
			_, err := fmt.Fprintf(w, "Event %s deleted.\n", shown(e.Name))
			return err
		})
}

func eventRepeat(r *remote) *cobra.Command {
	var want schema.Repeat
	var times int
	var until string
	cmd := &cobra.Command{Use: "repeat ROOM EVENT", Short: "Show or set when an event repeats; --every none stops it"}
	f := cmd.Flags()
	f.StringVar(&want.Every, "every", "", "day, week or none")
	f.IntVar(&want.Interval, "interval", 1, "number of days or weeks from one start to the next")
	f.IntVar(&times, "times", 0, "number of times, including the first; 0 for no end")
	f.StringVar(&until, "until", "", "last time at which it may start")
	f.StringVar(&want.TimeZone, "tz", "UTC", "`zone` whose clock it follows, like Europe/Berlin")
	f.StringVar(&want.TimeZone, "time-zone", "UTC", "`zone`")
	f.MarkDeprecated("time-zone", "use --tz; the next release drops the old name")
	return onEvent(r, cmd, func(ctx context.Context, c *client.Client, rm room, e event) (got *schema.Repeat, err error) {
		path := e.of(ours, rm) + "/repeat"
		switch {
		case want.Every == "" && (f.Changed("interval") || f.Changed("times") || f.Changed("until") || f.Changed("tz") || f.Changed("time-zone")):
			return nil, usageError{fmt.Errorf("--every day or --every week is missing; see %s --help", cmd.CommandPath())}
		case want.Every == "":
			return got, c.Do(ctx, http.MethodGet, path, nil, nil, &got)
		case want.Every == "none":
			return nil, c.Do(ctx, http.MethodDelete, path, nil, nil, nil)
		}
		if until != "" {
			if until, err = localTime("until", until, want.TimeZone); err != nil {
				return nil, err
			}
		}
		want.Times, want.Until = schema.Optional(times), schema.Optional(anteroom.Stamp(until))
		return got, c.Do(ctx, http.MethodPut, path, nil, want, &got)
	}, func(w io.Writer, _ room, e event, got *schema.Repeat) error {
		if got == nil {
			_, err := fmt.Fprintf(w, "Event %s happens once.\n", shown(e.Name))
			return err
		}
		text := fmt.Sprintf("every %s", got.Every)
		if got.Interval > 1 {
			text = fmt.Sprintf("every %d %ss", got.Interval, got.Every)
		}
		if got.Times != nil {
			text += fmt.Sprintf(", %d times", *got.Times)
		}
		if got.Until != nil {
			text += ", until " + string(*got.Until)
		}
		_, err := fmt.Fprintf(w, "Event %s repeats %s, in the time zone %s.\n", shown(e.Name), shown(text), shown(got.TimeZone))
		return err
	})
}

// errNotReady ends checklist when something keeps the event from happening as planned: it was printed.
var errNotReady = errors.New("the event is not ready, see above")

func eventChecklist(r *remote) *cobra.Command {
	var result string
	cmd := onEvent(r, &cobra.Command{Use: "checklist ROOM EVENT", Short: "Check what an event needs before it begins",
		Long: `Check what an event needs before it begins: limits that the application has carried before, invite
codes if it asks for them, a page that names the site, a webhook that arrives, a challenge, a clock in
sync, certificates that are valid to the end, and what anteroom doctor finds. The exit code is 1 if any result is an error.`},
		func(ctx context.Context, c *client.Client, rm room, e event) (list manage.Checklist, err error) {
			err = c.Do(ctx, http.MethodGet, e.of(ours, rm)+"/checklist", nil, nil, &list)
			result = list.Result
			return list, err
		}, func(w io.Writer, _ room, _ event, list manage.Checklist) error {
			for _, one := range list.Checks {
				fmt.Fprintf(w, "%-8s %-13s %s\n", shown(one.Result), shown(one.Check), shown(one.What))
				if one.Fix == "" {
					continue
				}
				if _, err := fmt.Fprintf(w, "  where: %s\n  why: %s\n  fix: %s\n", shown(one.Where), shown(one.Why), shown(one.Fix)); err != nil {
					return err
				}
			}
			return nil
		})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil || result != manage.CheckError {
			return err
		}
		return errNotReady
	}
	return cmd
}

func eventShuffle(r *remote) *cobra.Command {
	var number int
	var dir string
	cmd := &cobra.Command{Use: "shuffle ROOM EVENT", Short: "Show a shuffle and get the data to verify it",
		Example: `  anteroom event shuffle example.com/checkout drop --out shuffle
  anteroom verify shuffle/record.json --ids shuffle/ids.bin 3f9a1-c07be`}
	cmd.Flags().IntVar(&number, "occurrence", 0, "number of the occurrence of a repeated event, from 0")
	cmd.Flags().StringVar(&dir, "out", "", "`directory` to write record.json and ids.bin into")
	return onEvent(r, cmd, func(ctx context.Context, c *client.Client, rm room, e event) (rec shuffleRecord, err error) {
		path := e.of(ours, rm) + fmt.Sprintf("/shuffles/%d", number)
		if err := c.Do(ctx, http.MethodGet, path, nil, nil, &rec); err != nil || dir == "" {
			return rec, err
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return rec, err
		}
		if err := saveFile(filepath.Join(dir, "record.json"), func(w io.Writer) error { return printJSON(w, rec) }); err != nil || !rec.Done {
			return rec, err
		}
		return rec, saveFile(filepath.Join(dir, "ids.bin"), func(w io.Writer) error {
			return download(ctx, c, path+"/ids", nil, w)
		})
	}, func(w io.Writer, _ room, e event, rec shuffleRecord) error {
		fmt.Fprintf(w, "commitment %s\n", rec.Commitment)
		if !rec.Done {
			_, err := fmt.Fprintln(w, "The shuffle has not happened yet. The seed is published when it has.")
			return err
		}
		_, err := fmt.Fprintf(w, "seed       %s\nentries    %s\nvisitors   %d\n", schema.Value(rec.Seed), schema.Value(rec.Entries), schema.Value(rec.Count))
		return err
	})
}
