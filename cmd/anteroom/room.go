package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/internal/field"
)

func roomCommand() *cobra.Command {
	cmd := group("room", "Manage rooms and their queues")
	cmd.Long = `Manage rooms and their queues. Name a room as ZONE/NAME, by its id, or by its name if only one
room has it. Rooms of the configuration file can be paused, drained, reset and so on, but only the
file can change their settings.`
	cmd.Example = `  anteroom room create example.com/checkout --host shop.example.com --path /checkout \
      --total-active-users 500 --new-users-per-minute 300
  anteroom room set checkout --queue-all
  anteroom room find checkout 3f9a1-c07be`
	r := remoteFlags(cmd)
	cmd.AddCommand(roomList(r), inviteCommand(r), roomGet(r), roomCreate(r), roomSet(r), roomDelete(r), roomStatus(r), roomAdmit(r), roomReset(r), roomMessage(r), roomRemaining(r), roomCrowd(r), roomFind(r), roomRevoke(r))
	for _, o := range []struct{ word, short, done string }{
		{"pause", "Stop admitting new visitors until resumed", `Room %[1]s is paused. Run "anteroom room resume %[1]s" to continue.`},
		{"drain", "Close the queue to new visitors; those in it are admitted as usual", `Room %[1]s is draining: its queue is closed to new visitors. Run "anteroom room resume %[1]s" to open it.`},
		{"resume", "End a pause or a drain", "Room %[1]s resumed."},
	} {
		cmd.AddCommand(on(r, &cobra.Command{Use: o.word + " ROOM", Short: o.short, Args: names("ROOM")}, findRoom,
			asks[any](http.MethodPost, func(rm room) string { return rm.of(ours) + "/" + o.word }), tellRoom[any](o.done)))
	}
	return cmd
}

// tellRoom makes a show that prints a sentence about a room, with %[1]s for the room.
func tellRoom[R any](sentence string) func(io.Writer, room, R) error {
	return tell[R](func(rm room) string { return fmt.Sprintf(sentence, shown(rm.String())) })
}

// showMembers prints an object, a member a line: those of an object inside have its name
// before theirs.
func showMembers(w io.Writer, _ room, o map[string]any) error {
	t := newTable(w, "FIELD", "VALUE")
	var show func(before string, o map[string]any)
	show = func(before string, o map[string]any) {
		for _, k := range slices.Sorted(maps.Keys(o)) {
			switch v := o[k].(type) {
			case map[string]any:
				show(before+k+".", v)
			case []any:
				if len(v) == 0 || slices.ContainsFunc(v, func(one any) bool { _, is := one.(map[string]any); return !is }) {
					t.row(before+k, inline(v))
					continue
				}
				for i, one := range v {
					show(fmt.Sprintf("%s%s[%d].", before, k, i), one.(map[string]any))
				}
			case string:
				t.row(before+k, short(v))
			default:
				t.row(before+k, v)
			}
		}
	}
	show("", o)
	return t.Flush()
}

// short is the beginning of a long text, like that of a template.
func short(s string) string {
	const most = 100
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return s
}

func roomList(r *remote) *cobra.Command {
	var in string
	cmd := &cobra.Command{Use: "list", Short: "List the rooms", Args: noArgs}
	cmd.Flags().StringVar(&in, "zone", "", "only rooms of the zone with this `name`")
	return action(r, cmd, func(ctx context.Context, c *client.Client, _ []string) ([]room, error) {
		q := url.Values{}
		if in != "" {
			q.Set("zone", in)
		}
		return every[room](ctx, c, ours+"/rooms", q)
	}, func(w io.Writer, rooms []room) error {
		t := newTable(w, "ROOM", "COVERS", "ACTIVE USERS", "NEW PER MINUTE", "METHOD", "STATE", "SOURCE")
		for _, rm := range rooms {
			var covers []string
			for _, rt := range rm.Routes {
				covers = append(covers, rt.Host+rt.Path)
			}
			state := "open"
			switch {
			case rm.Suspended:
				state = "suspended"
			case rm.Shadow:
				state = "shadow"
			case rm.Controls.Remaining != nil && *rm.Controls.Remaining == 0:
				state = "sold out"
			case rm.Controls.Paused:
				state = "paused"
			case rm.LotteryPercent > 0:
				state = "lottery"
			case rm.QueueAll:
				state = "queue-all"
			case rm.Controls.Draining:
				state = "draining"
			}
			from := "API"
			if rm.File {
				from = "file"
			}
			t.row(rm.String(), strings.Join(covers, " "), rm.TotalActiveUsers, rm.NewUsersPerMinute, rm.QueueingMethod, state, from)
		}
		return t.Flush()
	})
}

func roomGet(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "get ROOM", Short: "Show the settings of a room", Args: names("ROOM")}, findRoom,
		asks[map[string]any](http.MethodGet, func(rm room) string { return rm.of(published) }), showMembers)
}

// setting is a field with the flag that sets it: of a section, one for each field inside.
type setting struct {
	field.Field
	flag string
	in   string // the section that it is of
}

// shortFlags are the flags that are not called like their fields.
var shortFlags = map[string]string{"event_start_time": "start", "event_end_time": "end", "prequeue_start_time": "prequeue", "shuffle_at_event_start": "shuffle"}

// settings are the fields that commands set by flags: all of the table, but for the name, which is
// an argument, and an event's repetition, which has a command.
func settings(fields []field.Field) []setting {
	var out []setting
	for _, f := range fields {
		switch {
		case f.Key == "name" || f.Key == "repeat":
		case f.IsSection():
			for _, inside := range field.Of(f.Type) {
				out = append(out, setting{inside, f.Flag() + "-" + inside.Flag(), f.Key})
			}
		default:
			out = append(out, setting{f, cmp.Or(shortFlags[f.Key], f.Flag()), ""})
		}
	}
	return out
}

// usage says what a flag is for. What it allows is said by the API, and here where it is short.
func (s setting) usage() string {
	switch {
	case s.Key == "custom_page_html":
		return "`file` with the HTML template of a custom page; - is standard input, \"\" the built-in page"
	case s.Key == "ramp":
		return s.Doc + " AFTER=NEW_USERS_PER_MINUTE or AFTER=NEW_USERS_PER_MINUTE/ACTIVE_USERS, separated by commas, like 0s=100,10m=300."
	case s.Key == "lanes":
		return s.Doc + " JSON as in the API, or a `file` with it; - is standard input, [] removes all."
	case s.IsSections():
		return s.Doc + " HOST/PATH, separated by commas."
	case s.Moment && !s.Required:
		return s.Doc + " \"\" removes it."
	case len(s.Enum) > 0 && len(s.Enum) < 10 && !strings.Contains(s.Doc, s.Enum[0]+":"):
		return s.Doc + " One of " + strings.Join(s.Enum, ", ") + "."
	}
	return s.Doc
}

// settingFlags adds flags and returns what collects those that were given.
func settingFlags(cmd *cobra.Command, fields []field.Field) func() (map[string]any, error) {
	f := cmd.Flags()
	all := settings(fields)
	cmd.InitDefaultHelpFlag()
	f.MarkHidden("help") // help is a screen long, and whoever reads it has found it
	var tz string
	if slices.ContainsFunc(all, func(s setting) bool { return s.Moment }) {
		f.StringVar(&tz, "tz", "", "`zone` of times without an offset, like Europe/Berlin")
	}
	for _, s := range all {
		switch {
		case s.IsList() && s.Key != "lanes":
			f.StringSlice(s.flag, nil, s.usage())
		case s.Type.Kind() == reflect.Bool:
			f.Bool(s.flag, false, s.usage())
		case s.Type.Kind() == reflect.Int && len(s.Enum) == 0:
			f.Int(s.flag, 0, s.usage())
		default:
			f.String(s.flag, "", s.usage())
		}
		if strings.HasPrefix(s.flag, "turnstile-") || strings.HasPrefix(s.flag, "pass") || strings.HasPrefix(s.flag, "protect-") && s.flag != "protect-return" || s.flag == "json-response-exact" || s.flag == "resubmit-forms" || strings.HasPrefix(s.flag, "page-") || strings.HasPrefix(s.flag, "session-networks") || strings.HasPrefix(s.flag, "lottery-") || strings.HasPrefix(s.flag, "account-") || s.flag == "first-request-list" || s.flag == "lanes" || s.flag == "turn-countdown" || s.flag == "web-push" || s.flag == "route-suffixes" { // in the documents; help is a screen long
			f.MarkHidden(s.flag)
		}
	}
	return func() (map[string]any, error) {
		body := map[string]any{}
		for _, s := range all {
			given := f.Lookup(s.flag)
			if !given.Changed {
				continue
			}
			v, err := s.value(given, cmd.InOrStdin(), tz)
			if err != nil {
				return nil, err
			}
			if s.in == "" {
				body[s.Key] = v
				continue
			}
			if body[s.in] == nil {
				body[s.in] = map[string]any{}
			}
			body[s.in].(map[string]any)[s.Key] = v
		}
		return body, nil
	}
}

// rampSteps reads steps like 10m=300, 10m=300/500 with active users, or 10m+15m=300, reached along a curve.
func rampSteps(list []string) (any, error) {
	steps := []map[string]any{}
	for _, text := range list {
		after, limits, ok := strings.Cut(text, "=")
		perMinute, active, both := strings.Cut(limits, "/")
		if !both {
			active = "0"
		}
		n, err := strconv.Atoi(perMinute)
		most, err2 := strconv.Atoi(active)
		if !ok || err != nil || err2 != nil {
			return nil, fmt.Errorf("--ramp: %.40q is not a step; write it like 10m=300, 10m=300/500 with active users, or 10m+15m=300 to take 15 minutes", text)
		}
		step := map[string]any{"after": after, "new_users_per_minute": n, "total_active_users": most}
		if after, over, curved := strings.Cut(after, "+"); curved {
			step["after"], step["over"] = after, over
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// value is what was given, as the API takes it. Times without an offset are by the clock of tz.
func (s setting) value(given *pflag.Flag, in io.Reader, tz string) (any, error) {
	text := given.Value.String()
	switch {
	case s.Key == "custom_page_html":
		return readTemplate(text, in)
	case s.Key == "ramp":
		return rampSteps(given.Value.(pflag.SliceValue).GetSlice())
	case s.Key == "lanes":
		return readLanes(text, in)
	case s.IsSections():
		routes := []map[string]any{}
		for _, route := range given.Value.(pflag.SliceValue).GetSlice() {
			host, path, _ := strings.Cut(route, "/")
			routes = append(routes, map[string]any{"host": host, "path": "/" + path})
		}
		return routes, nil
	case s.IsList():
		return given.Value.(pflag.SliceValue).GetSlice(), nil
	case s.Moment && text == "":
		return nil, nil
	case s.Moment:
		return localTime(s.flag, text, tz)
	case s.Minutes:
		d, err := time.ParseDuration(text)
		if n, number := strconv.Atoi(text); number == nil {
			d, err = time.Duration(n)*time.Minute, nil
		}
		if err != nil || d%time.Minute != 0 {
			return nil, usageError{fmt.Errorf("--%s %s: write whole minutes, like 5, 5m or 2h", s.flag, text)}
		}
		return int(d / time.Minute), nil
	case s.Type.Kind() == reflect.Bool:
		return text == "true", nil
	case s.Type.Kind() == reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--%s %s: not a whole number", s.flag, text)}
		}
		return n, nil
	}
	return text, nil
}

func readTemplate(name string, in io.Reader) (string, error) {
	if name == "" {
		return "", nil // back to the built-in page
	}
	b, err := readInput(name, in, anteroom.MaxTemplateBytes)
	return string(b), err
}

// readLanes takes a list of lanes as the API has it, or reads it from a file. What is in it is the API's to judge.
func readLanes(text string, in io.Reader) (any, error) {
	b := []byte(text)
	if !strings.HasPrefix(text, "[") {
		var err error
		if b, err = readInput(text, in, 64<<10); err != nil {
			return nil, err
		}
	}
	lanes := []map[string]any{}
	if err := json.Unmarshal(b, &lanes); err != nil {
		return nil, usageError{fmt.Errorf("--lanes: not a list of lanes (%v); write it like [{\"name\": \"members\", \"priority\": 50}]", err)}
	}
	return lanes, nil
}

// readInput reads a file, or in for "-", of at most so many bytes.
func readInput(name string, in io.Reader, most int64) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is too large: at most %d KiB", name, most>>10)
	}
	return b, err
}

// splitRoom takes ZONE/NAME apart.
func splitRoom(s string) (zone, name string, err error) {
	zone, name, both := strings.Cut(s, "/")
	if !both || zone == "" || name == "" {
		return "", "", usageError{fmt.Errorf("%q does not name a zone for the new room; write it like example.com/%s", s, cmp.Or(name, zone, "checkout"))}
	}
	return zone, name, nil
}

func roomCreate(r *remote) *cobra.Command {
	cmd := &cobra.Command{Use: "create ZONE/NAME", Short: "Create a room, and its zone if it does not exist",
		Long: "Create a room, and its zone if it does not exist. With --protect --protect-return 10m, admission follows the health of your application.", Args: names("ZONE/NAME")}
	given := settingFlags(cmd, anteroom.RoomFields())
	return action(r, cmd, func(ctx context.Context, c *client.Client, args []string) (o map[string]any, err error) {
		zoneName, name, err := splitRoom(args[0])
		if err != nil {
			return nil, err
		}
		body, err := given()
		if err != nil {
			return nil, err
		}
		body["name"] = name
		if body["host"] == nil {
			body["host"] = zoneName
		}
		z, err := findZone(ctx, c, zoneName)
		isNew := anteroom.KindOf(err) == anteroom.NotFound && !isID(zoneName)
		if err != nil && !isNew {
			return nil, err
		}
		create := func(c *client.Client) error {
			if isNew {
				if err := c.Do(ctx, http.MethodPost, "/zones", nil, map[string]any{"name": zoneName}, &z); err != nil {
					return err
				}
			}
			return c.Do(ctx, http.MethodPost, "/zones/"+url.PathEscape(string(z.ID))+"/waiting_rooms", nil, body, &o)
		}
		if isNew {
			// For a room that is refused, no zone is to be created, deleted and recorded. An older server has no rehearsals.
			there, err := r.rehearsal()
			if err == nil {
				err = create(there)
			}
			if err != nil && anteroom.KindOf(err) != anteroom.NotFound {
				return nil, err
			}
			z.ID = ""
		}
		err = create(c.Below(published))
		if err != nil && isNew && z.ID != "" {
			// Also after Ctrl-C. A zone that has got a room is not deleted.
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer stop()
			if left := c.Do(ctx, http.MethodDelete, zonePath(z), nil, nil, nil); left != nil {
				err = fmt.Errorf("%w\nzone %s was created and remains: %w", err, z.Name, left)
			}
		}
		return o, err
	}, say(func(o map[string]any) string {
		return fmt.Sprintf("Room %s has the id %s.", shown(o["name"]), shown(o["id"]))
	}))
}

// renameFlag adds the flag for another name and returns what puts it into the body.
func renameFlag(cmd *cobra.Command) func(body map[string]any) {
	name := cmd.Flags().String("name", "", "another `name`")
	return func(body map[string]any) {
		if cmd.Flags().Changed("name") {
			body["name"] = *name
		}
	}
}

func roomSet(r *remote) *cobra.Command {
	cmd := &cobra.Command{Use: "set ROOM", Short: "Change the settings named by the flags", Args: names("ROOM")}
	given, rename := settingFlags(cmd, anteroom.RoomFields()), renameFlag(cmd)
	return on(r, cmd, findRoom, func(ctx context.Context, c *client.Client, rm room, _ []string) (o map[string]any, err error) {
		body, err := given()
		if err != nil {
			return nil, err
		}
		rename(body)
		if len(body) == 0 {
			return nil, usageError{fmt.Errorf("no flag says what to change; see %s --help", cmd.CommandPath())}
		}
		return o, c.Do(ctx, http.MethodPatch, rm.of(published), nil, body, &o)
	}, tellRoom[map[string]any]("Room %s changed."))
}

func roomDelete(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "delete ROOM", Short: "Delete a room with its events, rules, queue and sessions", Args: names("ROOM")}, findRoom,
		asks[any](http.MethodDelete, func(rm room) string { return rm.of(published) }), tellRoom[any]("Room %s deleted."))
}

func roomStatus(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "status ROOM", Short: "Show the live figures of a room", Args: names("ROOM")}, findRoom,
		asks[map[string]any](http.MethodGet, func(rm room) string { return rm.of(ours) + "/status" }), showMembers)
}

func roomAdmit(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "admit ROOM N", Short: "Admit the next N visitors now, within the limits", Args: names("ROOM", "N")}, findRoom,
		func(ctx context.Context, c *client.Client, rm room, args []string) (a schema.Admitted, err error) {
			n, err := strconv.Atoi(args[0])
			if err != nil {
				return a, usageError{fmt.Errorf("%q is not a number of visitors", args[0])}
			}
			return a, c.Do(ctx, http.MethodPost, rm.of(ours)+"/admit", nil, schema.Admission{Count: n}, &a)
		}, func(w io.Writer, rm room, a schema.Admitted) error {
			_, err := fmt.Fprintf(w, "Called %s of room %s.\n", count(a.Admitted, "visitor"), shown(rm.String()))
			return err
		})
}

func roomReset(r *remote) *cobra.Command {
	var confirm string
	cmd := &cobra.Command{Use: "reset ROOM", Short: "Remove all visitors from the queue; sessions stay", Args: names("ROOM"),
		Example: "  anteroom room reset example.com/checkout --confirm checkout"}
	cmd.Flags().StringVar(&confirm, "confirm", "", "repeat the room's `name` to confirm")
	needs(cmd, "confirm")
	return on(r, cmd, findRoom, func(ctx context.Context, c *client.Client, rm room, _ []string) (result any, err error) {
		return result, c.Do(ctx, http.MethodPost, rm.of(ours)+"/reset", nil, schema.Reset{Confirm: confirm}, &result)
	}, tellRoom[any]("The queue of room %s is empty. Visitors who waited start over."))
}

func roomMessage(r *remote) *cobra.Command {
	var away bool
	cmd := &cobra.Command{Use: "message ROOM [TEXT]", Short: "Show a message on the waiting page, or remove it with --clear",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError{fmt.Errorf("%s takes a room and a message in quotes; see %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return nil
		},
		Example: `  anteroom room message example.com/checkout 'We are restocking. Your place is kept.'
  anteroom room message example.com/checkout --clear`}
	cmd.Flags().BoolVar(&away, "clear", false, "remove the message")
	return on(r, cmd, findRoom, func(ctx context.Context, c *client.Client, rm room, args []string) (result any, err error) {
		switch {
		case away && len(args) == 0:
			return result, c.Do(ctx, http.MethodDelete, rm.of(ours)+"/message", nil, nil, &result)
		case !away && len(args) == 1:
			return result, c.Do(ctx, http.MethodPut, rm.of(ours)+"/message", nil, schema.PageMessage{Text: args[0]}, &result)
		}
		return nil, usageError{fmt.Errorf("write the message in quotes, or --clear; see %s --help", cmd.CommandPath())}
	}, func(w io.Writer, rm room, _ any) error {
		told := "The message is now on the waiting page of room %s.\n"
		if away {
			told = "The waiting page of room %s no longer shows a message.\n"
		}
		_, err := fmt.Fprintf(w, told, shown(rm.String()))
		return err
	})
}

func roomRemaining(r *remote) *cobra.Command {
	var clear bool
	var sold int
	cmd := &cobra.Command{Use: "remaining ROOM [COUNT]", Short: "Tell visitors how many items are left; 0 closes the room as sold out",
		Args: func(cmd *cobra.Command, args []string) error {
			given := len(args) - 1
			if cmd.Flags().Changed("sold") {
				given++
			}
			if clear {
				given++
			}
			if len(args) < 1 || given != 1 {
				return usageError{fmt.Errorf("%s takes a room and a number, --sold or --clear; see %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return nil
		},
		Example: `  anteroom room remaining example.com/checkout 50
  anteroom room remaining example.com/checkout --sold 2
  anteroom room remaining example.com/checkout 0    # sold out
  anteroom room remaining example.com/checkout --clear`}
	cmd.Flags().BoolVar(&clear, "clear", false, "show no number, and open a room that was sold out")
	cmd.Flags().IntVar(&sold, "sold", 0, "subtract `N` sold items")
	return on(r, cmd, findRoom, func(ctx context.Context, c *client.Client, rm room, args []string) (result schema.Controls, err error) {
		path := rm.of(ours) + "/remaining"
		switch {
		case clear:
			return result, c.Do(ctx, http.MethodDelete, path, nil, nil, &result)
		case len(args) == 0:
			return result, c.Do(ctx, http.MethodPost, path, nil, schema.Sold{Sold: sold}, &result)
		}
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return result, usageError{fmt.Errorf("%q is not a number; see %s --help", args[0], cmd.CommandPath())}
		}
		return result, c.Do(ctx, http.MethodPut, path, nil, schema.Left{Remaining: n}, &result)
	}, func(w io.Writer, rm room, now schema.Controls) error {
		told := "The waiting page of room %s no longer shows how many items are left.\n"
		if now.Remaining != nil {
			told = "The waiting page of room %s now shows " + count(*now.Remaining, "item") + " left.\n"
			if *now.Remaining == 0 {
				told = "Room %s is sold out: no one new is admitted.\n"
			}
		}
		_, err := fmt.Fprintf(w, told, shown(rm.String()))
		return err
	})
}

func roomCrowd(r *remote) *cobra.Command {
	var b schema.Crowd
	var over time.Duration
	var stop bool
	cmd := &cobra.Command{Use: "crowd ROOM", Short: "Try a room with simulated visitors, or show how the last ones are doing", Args: names("ROOM"),
		Long: `Send simulated visitors (--visitors) to a room in which nobody waits, or show how the last ones are
doing. They queue and count like real visitors. Once they are admitted, Anteroom itself answers them:
your application gets no requests.`,
		Example: `  anteroom room crowd example.com/checkout --visitors 300 --over 30s
  anteroom room crowd example.com/checkout
  anteroom room crowd example.com/checkout --stop`}
	cmd.Flags().IntVar(&b.Visitors, "visitors", 0, "send `N` visitors, at most 2000")
	cmd.Flags().DurationVar(&over, "over", 0, "`time` over which they arrive, at most 10m")
	cmd.Flags().BoolVar(&stop, "stop", false, "stop the simulated visitors")
	cmd.MarkFlagsMutuallyExclusive("visitors", "stop")
	cmd.MarkFlagsMutuallyExclusive("over", "stop")
	return on(r, cmd, findRoom, func(ctx context.Context, c *client.Client, rm room, _ []string) (result schema.CrowdStatus, err error) {
		method, body := http.MethodGet, any(nil)
		switch {
		case stop:
			method = http.MethodDelete
		case cmd.Flags().Changed("visitors"):
			b.OverSeconds = int(over.Round(time.Second) / time.Second)
			method, body = http.MethodPost, b
		case over != 0:
			return result, usageError{fmt.Errorf("--over needs --visitors; see %s --help", cmd.CommandPath())}
		}
		return result, c.Do(ctx, method, rm.of(ours)+"/crowd", nil, body, &result)
	}, func(w io.Writer, rm room, st schema.CrowdStatus) error {
		if st.BeganAt == nil {
			_, err := fmt.Fprintf(w, "No simulated visitors were sent to room %s since the process started.\n", shown(rm.String()))
			return err
		}
		state := "running"
		if st.EndedAt != nil {
			state = "ended"
		}
		_, err := fmt.Fprintf(w, "Simulated visitors in room %s, %s: %d of %d have arrived, %d wait, %d were admitted, %d gave up.\n",
			shown(rm.String()), state, st.Arrived, st.Visitors, st.Waiting, st.Admitted, st.GaveUp)
		if err == nil && st.Failed > 0 {
			reason := ""
			if st.Failure != nil {
				reason = ", the first: " + *st.Failure
			}
			_, err = fmt.Fprintf(w, "%d requests failed%s.\n", st.Failed, shown(reason))
		}
		return err
	})
}

func roomFind(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "find ROOM CODE", Short: "Find a visitor by the reference code on the waiting page", Args: names("ROOM", "CODE")}, findRoom,
		func(ctx context.Context, c *client.Client, rm room, args []string) (found []schema.Visitor, err error) {
			return found, c.Do(ctx, http.MethodGet, rm.of(ours)+"/visitors/"+url.PathEscape(args[0]), nil, nil, &found)
		}, func(w io.Writer, _ room, found []schema.Visitor) error {
			t := newTable(w, "CODE", "STATE", "ARRIVED", "ADMITTED", "LAST SEEN", "AHEAD", "ID")
			for _, v := range found {
				ahead := any(nil)
				if v.Ahead != nil {
					ahead = *v.Ahead
				}
				t.row(v.Reference, v.Standing, moment(v.ArrivedAt), moment(v.AcceptedAt), moment(v.LastSeenAt), ahead, v.ID)
			}
			return t.Flush()
		})
}

func moment(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.Format(time.RFC3339)
}

func roomRevoke(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "revoke ROOM ID", Short: "End a visitor's session; anteroom room find shows its id", Args: names("ROOM", "ID")}, findRoom,
		func(ctx context.Context, c *client.Client, rm room, args []string) (result any, err error) {
			return result, c.Do(ctx, http.MethodDelete, rm.of(ours)+"/sessions/"+url.PathEscape(args[0]), nil, nil, &result)
		}, tell[any](func(room) string { return "Session ended. The next request counts as a new visitor's." }))
}
