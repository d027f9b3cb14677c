package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
)

// Where the two APIs of an installation begin.
const (
	published = "/client/v4"
	ours      = "/anteroom/v1"
)

// defaultAPI is the admin listener as it is without a configuration.
const defaultAPI = "http://127.0.0.1:8081"

// remote are the flags of a command that talks to a running Anteroom.
type remote struct {
	url, token string
	*output
}

// remoteFlags adds --api, --token and -o to a command and those below it.
func remoteFlags(cmd *cobra.Command) *remote {
	r := &remote{}
	f := cmd.PersistentFlags()
	r.flags(f)
	r.output = outputFlags(f)
	return r
}

// flags adds --api and --token.
func (r *remote) flags(f *pflag.FlagSet) {
	f.StringVar(&r.url, "api", "", "`URL` of the admin address (default "+defaultAPI+", or ANTEROOM_API)")
	f.StringVar(&r.token, "token", "", "API `token`; better set ANTEROOM_API_TOKEN, or ANTEROOM_API_TOKEN_FILE to the name of its file")
}

// client returns a client whose base is the root of the installation.
func (r *remote) client() (*client.Client, error) {
	token, err := secret(r.token, "ANTEROOM_API_TOKEN")
	if err != nil {
		return nil, err
	}
	base := cmp.Or(r.url, os.Getenv("ANTEROOM_API"), defaultAPI)
	for _, end := range []string{published, ours} {
		base = strings.TrimSuffix(strings.TrimRight(base, "/"), end)
	}
	return client.New(client.Config{URL: base, Token: token, UserAgent: "anteroom/" + versionString()})
}

// secret returns what a flag says, or else the environment, or else the file that the
// environment names.
func secret(flag, variable string) (string, error) {
	if s := cmp.Or(flag, os.Getenv(variable)); s != "" {
		return s, nil
	}
	name := os.Getenv(variable + "_FILE")
	if name == "" {
		return "", nil
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", variable, err)
	}
	defer file.Close()
	const most = 4 << 10
	b, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil || len(b) > most {
		return "", fmt.Errorf("%s_FILE: %s does not hold a token", variable, name)
	}
	return strings.TrimSpace(string(b)), nil
}

// advise puts behind an error of the API what can be done about it.
func advise(err error) error {
	_, answered := errors.AsType[*client.Error](err)
	switch {
	case err == nil || !answered && anteroom.KindOf(err) != anteroom.Unavailable:
		return err
	case !answered:
		return fmt.Errorf("%w\nuse --api to say where Anteroom runs; anteroom run starts one, with its admin address on %s", err, defaultAPI)
	case anteroom.KindOf(err) == anteroom.Denied:
		return fmt.Errorf("%w\nthe token is missing, unknown or expired, or it may not do this: pass another one with --token or ANTEROOM_API_TOKEN; anteroom token list shows what each token may do", err)
	}
	return err
}

// group makes a command that only has commands below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: commandBelow, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// formerly makes a command that stands for another one, under the name that it had. The release that warns is followed by
// one without it.
func formerly(old, name string, cmd *cobra.Command) *cobra.Command {
	cmd.Use = strings.Replace(cmd.Use, name, old, 1)
	cmd.Deprecated = fmt.Sprintf("use %q; the next release drops the old name", name)
	return cmd
}

// names makes the check of a command's arguments: each has a name, the last one may be
// repeated when it ends in "...".
func names(want ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		many := len(want) > 0 && strings.HasSuffix(want[len(want)-1], "...")
		if len(args) < len(want) {
			return usageError{fmt.Errorf("%s needs %s; see %s --help", cmd.CommandPath(), strings.Join(want[len(args):], " "), cmd.CommandPath())}
		}
		if len(args) > len(want) && !many {
			return usageError{fmt.Errorf("%s takes no argument like %q; see %s --help", cmd.CommandPath(), args[len(want)], cmd.CommandPath())}
		}
		// A variable of a script that is not set: the path of the request would name something else.
		if i := slices.Index(args, ""); i >= 0 {
			return usageError{fmt.Errorf("%s: %s is empty; see %s --help", cmd.CommandPath(), strings.TrimSuffix(want[min(i, len(want)-1)], "..."), cmd.CommandPath())}
		}
		return nil
	}
}

// needs refuses a command line without a flag.
func needs(cmd *cobra.Command, flag string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed(flag) {
			return usageError{fmt.Errorf("%s needs --%s; see %s --help", cmd.CommandPath(), flag, cmd.CommandPath())}
		}
		return nil
	}
}

// table prints rows in columns for people.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer, heads ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)}
	fmt.Fprintln(t, strings.Join(heads, "\t"))
	return t
}

func (t table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, shown(c))
	}
	fmt.Fprintln(t)
}

// shown is a value as a person reads it on a terminal: what somebody wrote into a name cannot
// move the cursor.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		if v == "" {
			return "-"
		}
		return harmless(v, "")
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	return harmless(fmt.Sprint(v), "")
}

// harmless replaces what a terminal would obey, but for some.
func harmless(s, but string) string {
	return strings.Map(func(r rune) rune {
		if (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) && !strings.ContainsRune(but, r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// pick returns the one of all that somebody means: by its id, or by a name that only one has. kind is what they are,
// like "token", and what of says of each is its id and its name.
func pick[T any](all []T, kind, meant string, of func(T) (id, name string)) (one T, err error) {
	var same []T
	for _, t := range all {
		id, name := of(t)
		if id == meant {
			return t, nil
		}
		if name == meant {
			same = append(same, t)
		}
	}
	switch len(same) {
	case 1:
		return same[0], nil
	case 0:
		return one, anteroom.Errorf(anteroom.NotFound, "there is no %[1]s %[2]q; anteroom %[1]s list shows all", kind, meant)
	}
	return one, anteroom.Errorf(anteroom.Invalid, "%d %ss have the name %q; give the id, which anteroom %s list shows", len(same), kind, meant, kind)
}

// finder returns what somebody means by a text.
type finder[T any] func(ctx context.Context, c *client.Client, meant string) (T, error)

// listed makes the finder of what a path of the API lists.
func listed[T any](path, kind string, of func(T) (id, name string)) finder[T] {
	return func(ctx context.Context, c *client.Client, meant string) (one T, err error) {
		all, err := every[T](ctx, c, path, nil)
		if err != nil {
			return one, err
		}
		return pick(all, kind, meant, of)
	}
}

var findZone = listed(ours+"/zones", "zone", func(z schema.Zone) (id, name string) { return string(z.ID), z.Name })

// places are the names of zones and rooms by their ids.
type places map[string]string

// readPlaces reads the names of all zones and rooms that the token may read.
func readPlaces(ctx context.Context, c *client.Client) (places, error) {
	zones, err := every[schema.Zone](ctx, c, ours+"/zones", nil)
	if err != nil {
		return nil, err
	}
	rooms, err := every[room](ctx, c, ours+"/rooms", nil)
	if err != nil {
		return nil, err
	}
	known := places{}
	for _, z := range zones {
		known[string(z.ID)] = z.Name
	}
	for _, rm := range rooms {
		known[string(rm.ID)] = rm.String()
	}
	return known, nil
}

// listing makes a command that lists what a path of the API has, with the names of the zones and rooms that it is for.
func listing[T any](r *remote, cmd *cobra.Command, path string, show func(io.Writer, places, []T) error) *cobra.Command {
	var known places
	return action(r, cmd, func(ctx context.Context, c *client.Client, _ []string) (all []T, err error) {
		if known, err = readPlaces(ctx, c); err != nil {
			return nil, err
		}
		return every[T](ctx, c, path, nil)
	}, func(w io.Writer, all []T) error { return show(w, known, all) })
}

// of names what something is for: a room, a zone, or everything, which is all. What is gone, or
// may not be read, has its id for a name.
func (p places) of(zone *anteroom.ZoneID, room *anteroom.RoomID, all string) string {
	named := func(id string) string { return cmp.Or(p[id], id) }
	switch {
	case room != nil:
		return "room " + named(string(*room))
	case zone != nil:
		return "zone " + named(string(*zone))
	}
	return all
}

// room is a room of the API, with its paths.
type room struct{ schema.Room }

// of is the room's place below one of the APIs.
func (r room) of(api string) string {
	below := "/rooms/"
	if api == published {
		below = "/waiting_rooms/"
	}
	return api + "/zones/" + url.PathEscape(string(r.Zone.ID)) + below + url.PathEscape(string(r.ID))
}

func (r room) String() string { return r.Zone.Name + "/" + r.Name }

// findRoom returns the room that somebody means: ZONE/NAME, an id, or a name that only one
// room has.
func findRoom(ctx context.Context, c *client.Client, name string) (room, error) {
	q := url.Values{}
	zoneName, last, both := strings.Cut(name, "/")
	switch {
	case both:
		q.Set("zone", zoneName)
		q.Set("name", last)
	case isID(name):
		q.Set("id", name)
	default:
		q.Set("name", name)
	}
	rooms, err := every[room](ctx, c, ours+"/rooms", q)
	switch {
	case err != nil:
		return room{}, err
	case len(rooms) == 0:
		return room{}, anteroom.Errorf(anteroom.NotFound, "there is no room %q; anteroom room list shows all", name)
	case len(rooms) > 1:
		var all []string
		for _, r := range rooms {
			all = append(all, r.String())
		}
		return room{}, anteroom.Errorf(anteroom.Invalid, "%d rooms have the name %q; say which: %s", len(rooms), name, strings.Join(all, ", "))
	}
	return rooms[0], nil
}

func isID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// every reads a whole list.
func every[T any](ctx context.Context, c *client.Client, path string, q url.Values) ([]T, error) {
	raw, err := c.All(ctx, path, q)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(raw))
	for i := range raw {
		if err := json.Unmarshal(raw[i], &out[i]); err != nil {
			return nil, anteroom.Errorf(anteroom.Unavailable, "GET %s: the response is not the expected list: %w", path, err)
		}
	}
	return out, nil
}

// action makes a command that talks to the API. It prints what do returns as data, or lets
// show print it for people.
func action[T any](r *remote, cmd *cobra.Command, do func(ctx context.Context, c *client.Client, args []string) (T, error), show func(w io.Writer, result T) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.client()
		if err != nil {
			return err
		}
		result, err := do(cmd.Context(), c, args)
		if err != nil {
			return advise(err)
		}
		return put(r.output, cmd.OutOrStdout(), result, show)
	}
	return cmd
}

// on makes a command whose first argument is a T.
func on[T, R any](r *remote, cmd *cobra.Command, find finder[T], do func(context.Context, *client.Client, T, []string) (R, error), show func(io.Writer, T, R) error) *cobra.Command {
	var t T
	return action(r, cmd, func(ctx context.Context, c *client.Client, args []string) (result R, err error) {
		if t, err = find(ctx, c, args[0]); err != nil {
			return result, err
		}
		return do(ctx, c, t, args[1:])
	}, func(w io.Writer, result R) error { return show(w, t, result) })
}

// asks makes what a command does of one request without a body.
func asks[R, T any](method string, path func(T) string) func(context.Context, *client.Client, T, []string) (R, error) {
	return func(ctx context.Context, c *client.Client, t T, _ []string) (result R, err error) {
		return result, c.Do(ctx, method, path(t), nil, nil, &result)
	}
}

// removal makes the command that deletes a T, and prints what it was. Name is what to call it, like "Zone example.com".
func removal[T any](r *remote, cmd *cobra.Command, find finder[T], path, name func(T) string) *cobra.Command {
	return on(r, cmd, find, func(ctx context.Context, c *client.Client, t T, _ []string) (T, error) {
		return t, c.Do(ctx, http.MethodDelete, path(t), nil, nil, nil)
	}, tell[T](func(t T) string { return name(t) + " deleted." }))
}

// tell makes a show that prints one sentence about a T, whatever the result is.
func tell[R, T any](sentence func(T) string) func(io.Writer, T, R) error {
	return func(w io.Writer, t T, _ R) error {
		_, err := fmt.Fprintln(w, sentence(t))
		return err
	}
}

// show makes a show for on of one that needs only the result.
func show[T, R any](print func(io.Writer, R) error) func(io.Writer, T, R) error {
	return func(w io.Writer, _ T, result R) error { return print(w, result) }
}

// say makes a show that prints one sentence.
func say[T any](sentence func(T) string) func(io.Writer, T) error {
	return func(w io.Writer, result T) error {
		_, err := fmt.Fprintln(w, sentence(result))
		return err
	}
}
