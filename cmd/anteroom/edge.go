package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/examples/edges"
	"github.com/anteroom/anteroom/server"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/pass"
)

// written is what "edge init" has done.
type written struct {
	Files []string `json:"files"`
	Check []string `json:"check"`
}

const (
	maxKeys = 64 << 10         // bytes that are read of the public keys
	askTime = 10 * time.Second // for an answer of an edge, of Anteroom or of an application
)

func edgesCommand() *cobra.Command {
	var kinds []string
	for _, r := range edges.Recipes {
		kinds = append(kinds, r.Name)
	}
	i := edges.Installation{}
	var roomName, data string
	var replace bool
	cmd := &cobra.Command{
		Use:   "init KIND",
		Short: "Write the configuration of an edge for a room",
		Long: `Write the configuration of an edge that keeps the traffic, with the addresses, names and keys of this
installation, and say what to check. KIND is one of ` + strings.Join(kinds, ", ") + `.
worker, cloudfront and the kinds with -pass verify passes and send active users straight to the
application; the others ask Anteroom about each request. docs/edges.md helps you choose. Merge the
files into your configuration.`,
		Example: `  anteroom edge init haproxy-pass --room shop --application 10.0.0.7:3000 --out /etc/haproxy`,
		Args:    names("KIND"),
	}
	f := cmd.Flags()
	f.StringVar(&roomName, "room", "", "the `room`: ZONE/NAME, an id, or a name that only one room has")
	f.StringVar(&i.Application, "application", "", "`host:port` of your application, as the edge reaches it")
	f.StringVar(&i.Anteroom, "anteroom", edges.Example.Anteroom, "`host:port` where Anteroom listens for visitors")
	f.StringVar(&i.Verdicts, "verdicts", edges.Example.Verdicts, "`host:port` of forward_auth.listen")
	f.StringVar(&i.Host, "host", "", "`host` that visitors use (default the room's)")
	f.StringVar(&i.Issuer, "issuer", edges.Example.Issuer, "proof.issuer of the configuration")
	f.StringVar(&i.Folder, "out", ".", "`directory` for the files; some contain its name")
	f.StringVar(&data, "data", "./anteroom-data", "data `directory` with the keys, for nginx-pass")
	f.BoolVar(&replace, "replace", false, "overwrite existing files")
	edge := group("edge", "Write configurations of proxies that keep the traffic", cmd)
	r := remoteFlags(edge)
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if _, ok := edges.Named(args[0]); !ok {
			return usageError{fmt.Errorf("there is no recipe %q; use one of %s", args[0], strings.Join(kinds, ", "))}
		}
		for _, flag := range []string{"room", "application"} {
			if !f.Changed(flag) {
				return usageError{fmt.Errorf("%s needs --%s; see %s --help", cmd.CommandPath(), flag, cmd.CommandPath())}
			}
		}
		return nil
	}
	action(r, cmd, func(ctx context.Context, c *client.Client, args []string) (written, error) {
		recipe, _ := edges.Named(args[0])
		rm, err := findRoom(ctx, c, roomName)
		if err != nil {
			return written{}, err
		}
		texts, err := edgeFiles(ctx, c, recipe, rm, i, data)
		if err != nil {
			return written{}, err
		}
		return writeEdge(i.Folder, replace, recipe, texts)
	}, func(w io.Writer, done written) error {
		for _, name := range done.Files {
			fmt.Fprintln(w, "Wrote "+shown(name))
		}
		_, err := fmt.Fprintln(w, "\nCheck:\n- "+strings.Join(done.Check, "\n- "))
		return err
	})
	return edge
}

// edgeFiles returns the texts of a recipe for a room, by name.
func edgeFiles(ctx context.Context, c *client.Client, recipe edges.Recipe, rm room, i edges.Installation, data string) (map[string]string, error) {
	var settings struct {
		Suffix string `json:"cookie_suffix"`
		Pass   string `json:"pass"`
		Edge   string `json:"pass_edge"`
	}
	if err := c.Do(ctx, http.MethodGet, rm.of(published), nil, nil, &settings); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(i.Folder)
	if err != nil {
		return nil, err
	}
	i.Folder, i.Host, i.Zone, i.Room, i.Suffix = folder, cmp.Or(i.Host, rm.Routes[0].Host), rm.Zone.Name, string(rm.ID), settings.Suffix
	if i.Host == "*" {
		return nil, usageError{fmt.Errorf("room %s covers every host; use --host for the one that visitors ask for", rm)}
	}
	// What recipes without passes do not name need not be right.
	i.Pass, i.Kid = edges.Example.Pass, edges.Example.Kid
	if !recipe.Passes {
		return recipe.Files(i)
	}
	if i.Pass, err = time.ParseDuration(settings.Pass); err != nil || i.Pass <= 0 {
		return nil, fmt.Errorf("room %s issues no passes: set its pass, for example to 30s, or use a recipe that asks about each request", rm)
	}
	switch {
	case recipe.Secret && settings.Edge == "":
		return nil, fmt.Errorf("the passes of room %s are signed with ES256, and the recipe %s verifies HS256: name the edge in pass_edge of the room", rm, recipe.Name)
	case !recipe.Secret && settings.Edge != "":
		return nil, fmt.Errorf("the passes of room %s are signed for the edge %q alone, with HS256; the recipe %s verifies ES256: remove pass_edge of the room", rm, settings.Edge, recipe.Name)
	case len(rm.Routes) != 1 || rm.Routes[0].Path != "/":
		return nil, fmt.Errorf("room %s does not cover the whole of one host, and with the recipe %s a pass would be valid for all of it: use a recipe that asks about each request", rm, recipe.Name)
	}
	if recipe.Secret {
		if i.Secrets, err = edgeSecrets(data, settings.Edge); err != nil {
			return nil, err
		}
	}
	if !recipe.Keys {
		return recipe.Files(i)
	}
	pem, err := fetchKeys(ctx, i.Anteroom, i.Host)
	if err != nil {
		return nil, err
	}
	kid := regexp.MustCompile(`(?m)^kid: (\S+)$`).FindStringSubmatch(pem)
	if kid == nil {
		return nil, fmt.Errorf("%s did not answer with the public keys of passes: is it Anteroom, and does it serve %s?", i.Anteroom, i.Host)
	}
	i.Kid = kid[1]
	texts, err := recipe.Files(i)
	if err != nil {
		return nil, err
	}
	texts["pass.pem"] = pem
	return texts, nil
}

// edgeSecrets returns the secrets of an edge, by the data directory.
func edgeSecrets(data, edge string) (map[string]string, error) {
	ring, err := ticket.Load(server.KeyFile(data))
	if err != nil {
		return nil, err
	}
	keys, err := pass.Of(ring)
	if err != nil {
		return nil, err
	}
	secrets, err := keys.Edge(edge)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, s := range secrets {
		out[s.ID] = s.Text
	}
	return out, nil
}

// fetchKeys reads the public keys of passes, as Anteroom publishes them for a host.
func fetchKeys(ctx context.Context, address, host string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/.well-known/anteroom/pass.pem", nil)
	if err != nil {
		return "", err
	}
	req.Host = host
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("reading the public keys of passes (use --anteroom to say where Anteroom listens for visitors): %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxKeys))
	return string(text), err
}

// writeEdge writes the files of a recipe into a folder.
func writeEdge(folder string, replace bool, recipe edges.Recipe, texts map[string]string) (written, error) {
	done := written{Check: recipe.Check}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return done, err
	}
	mode := os.FileMode(0o644)
	if recipe.Secret {
		mode = 0o600
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if replace {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		file, err := os.OpenFile(filepath.Join(folder, name), how, mode)
		if errors.Is(err, os.ErrExist) {
			return done, anteroom.Errorf(anteroom.Conflict, "%s exists; pass --replace to overwrite it", filepath.Join(folder, name))
		}
		if err != nil {
			return done, err
		}
		err = file.Chmod(mode) // of a file that was there, too
		if err == nil {
			_, err = io.WriteString(file, texts[name])
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return done, err
		}
		done.Files = append(done.Files, file.Name())
	}
	return done, nil
}
