package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
)

func tokenCommand() *cobra.Command {
	cmd := group("token", "Manage API tokens")
	cmd.Long = `Manage API tokens. A token can read or edit everything, some zones or some rooms. An admin token can
also manage tokens and keys, read the audit log, and make and restore backups. A scrape token can
only read metrics and status. The secret of a token is shown once, when you create it.`
	cmd.Example = `  anteroom token create terraform --permission edit --zone example.com --life 90d
  anteroom token create dashboard --permission read --from 10.0.0.0/8
  anteroom token create prometheus --permission scrape --never-expires
  anteroom token rotate terraform --overlap 1h`
	r := remoteFlags(cmd)
	cmd.AddCommand(tokenList(r), tokenCreate(r), tokenRotate(r), tokenDelete(r))
	return cmd
}

var findToken = listed(ours+"/tokens", "token", func(t schema.Token) (id, name string) { return t.ID, t.Name })

func tokenPath(t schema.Token) string { return ours + "/tokens/" + url.PathEscape(t.ID) }

func tokenList(r *remote) *cobra.Command {
	return listing(r, &cobra.Command{Use: "list", Short: "List the tokens, without their secrets", Args: noArgs}, ours+"/tokens",
		func(w io.Writer, known places, tokens []schema.Token) error {
			t := newTable(w, "TOKEN", "PERMISSIONS", "NETWORKS", "EXPIRES", "LAST USED", "ID")
			for _, one := range tokens {
				var may, networks []string
				for _, n := range one.Networks {
					networks = append(networks, n.String())
				}
				for _, g := range one.Grants {
					may = append(may, strings.TrimSpace(g.Permission+" "+known.of(g.Zone, g.Room, "")))
				}
				t.row(one.Name, strings.Join(may, ", "), strings.Join(networks, " "), moment(one.ExpiresOn), moment(one.LastUsed), one.ID)
			}
			return t.Flush()
		})
}

func tokenCreate(r *remote) *cobra.Command {
	var permission string
	var zones, rooms, networks []string
	var life time.Duration
	var never bool
	cmd := &cobra.Command{Use: "create NAME", Short: "Create a token and print its secret, once", Args: names("NAME")}
	f := cmd.Flags()
	f.StringVar(&permission, "permission", "read", "scrape, read, edit or admin")
	f.StringArrayVar(&zones, "zone", nil, "only in the zone with this `name`; repeatable")
	f.StringArrayVar(&rooms, "room", nil, "only for this `room`, as ZONE/NAME; repeatable")
	f.StringArrayVar(&networks, "from", nil, "only from this `network`; repeatable")
	f.Var((*days)(&life), "life", "how long the token is valid, like 48h or 30d; 90 days by default")
	f.BoolVar(&never, "never-expires", false, "valid until it is deleted")
	return action(r, cmd, func(ctx context.Context, c *client.Client, args []string) (t schema.NewToken, err error) {
		var grants []schema.Grant
		for _, name := range zones {
			z, err := findZone(ctx, c, name)
			if err != nil {
				return t, err
			}
			grants = append(grants, schema.Grant{Permission: permission, Zone: &z.ID})
		}
		for _, name := range rooms {
			rm, err := findRoom(ctx, c, name)
			if err != nil {
				return t, err
			}
			grants = append(grants, schema.Grant{Permission: permission, Zone: &rm.Zone.ID, Room: &rm.ID})
		}
		if grants == nil {
			grants = []schema.Grant{{Permission: permission}}
		}
		body := map[string]any{"name": args[0], "grants": grants, "networks": networks}
		switch {
		case never:
			body["expires_on"] = nil
		case life != 0:
			body["expires_on"] = time.Now().Add(life).UTC().Format(time.RFC3339)
		}
		return t, c.Do(ctx, http.MethodPost, ours+"/tokens", nil, body, &t)
	}, showSecret)
}

func showSecret(w io.Writer, t schema.NewToken) error {
	until := "until it is deleted"
	if t.ExpiresOn != nil {
		until = "until " + t.ExpiresOn.Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(w, "%s\nThis is the secret of token %s, valid %s. It is not shown again.\n", t.Secret, shown(t.Name), until)
	return err
}

// days is the value of a flag for a time that people count in days.
type days time.Duration

func (d *days) Set(text string) error {
	whole, rest, counted := strings.Cut(text, "d")
	n := 0
	if counted {
		var err error
		if n, err = strconv.Atoi(whole); err != nil || n < 0 || n > 100_000 {
			return errors.New("write it like 48h, 30d or 1d12h")
		}
		text = cmp.Or(rest, "0s")
	}
	more, err := time.ParseDuration(text)
	if err != nil || counted && more < 0 {
		return errors.New("write it like 48h, 30d or 1d12h")
	}
	*d = days(time.Duration(n)*24*time.Hour + more)
	return nil
}

func (d *days) String() string {
	if *d == 0 {
		return "0" // so that help shows no default
	}
	return time.Duration(*d).String()
}
func (d *days) Type() string { return "duration" }

func tokenRotate(r *remote) *cobra.Command {
	cmd := &cobra.Command{Use: "rotate TOKEN", Short: "Rotate the secret of a token; the old one stays valid for a while", Args: names("TOKEN")}
	return rotation(r, cmd, "how long the old secret stays valid; 0s ends it now", findToken, tokenPath, showSecret)
}

// rotation makes a command that gives a T a new secret.
func rotation[T, R any](r *remote, cmd *cobra.Command, usage string, find finder[T], path func(T) string, print func(io.Writer, R) error) *cobra.Command {
	overlap := cmd.Flags().Duration("overlap", 24*time.Hour, usage)
	return on(r, cmd, find, func(ctx context.Context, c *client.Client, t T, _ []string) (made R, err error) {
		if *overlap != overlap.Truncate(time.Second) {
			return made, usageError{fmt.Errorf("--overlap %v: use whole seconds", *overlap)}
		}
		return made, c.Do(ctx, http.MethodPost, path(t)+"/rotate", nil, schema.Rotation{OverlapSeconds: int(*overlap / time.Second)}, &made)
	}, show[T](print))
}

func tokenDelete(r *remote) *cobra.Command {
	return removal(r, &cobra.Command{Use: "delete TOKEN", Short: "Delete a token; it is invalid at once", Args: names("TOKEN")},
		findToken, tokenPath, func(t schema.Token) string { return "Token " + shown(t.Name) })
}
