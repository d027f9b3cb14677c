package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
)

func tokenCommand() *cobra.Command {
	cmd := group("token", "Manage API tokens")
	cmd.Long = `Manage API tokens. A token can read or edit everything, some zones or some rooms. An admin token can
also manage tokens and keys, read the audit log, and make and restore backups. A scrape token can
only read metrics and status. The secret of a token is shown once, when you create it.`
	cmd.Example = `  anteroom token create terraform --permission edit --zone example.com --life 2160h
  anteroom token create dashboard --permission read --from 10.0.0.0/8
  anteroom token create prometheus --permission scrape --never-expires
  anteroom token rotate terraform --overlap 1h`
	r := remoteFlags(cmd)
	cmd.AddCommand(tokenList(r), tokenCreate(r), tokenRotate(r), tokenDelete(r))
	return cmd
}

func findToken(ctx context.Context, c *client.Client, name string) (schema.Token, error) {
	tokens, err := every[schema.Token](ctx, c, ours+"/tokens", nil)
	if err != nil {
		return schema.Token{}, err
	}
	if i := slices.IndexFunc(tokens, func(t schema.Token) bool { return t.ID == name }); i >= 0 {
		return tokens[i], nil
	}
	same := slices.DeleteFunc(tokens, func(t schema.Token) bool { return t.Name != name })
	switch len(same) {
	case 1:
		return same[0], nil
	case 0:
		return schema.Token{}, anteroom.Errorf(anteroom.NotFound, "there is no token %q; anteroom token list shows all", name)
	}
	return schema.Token{}, anteroom.Errorf(anteroom.Invalid, "%d tokens have the name %q; give the id, which anteroom token list shows", len(same), name)
}

func tokenList(r *remote) *cobra.Command {
	var known places
	return action(r, &cobra.Command{Use: "list", Short: "List the tokens, without their secrets", Args: noArgs},
		func(ctx context.Context, c *client.Client, _ []string) (all []schema.Token, err error) {
			if known, err = readPlaces(ctx, c); err != nil {
				return nil, err
			}
			return every[schema.Token](ctx, c, ours+"/tokens", nil)
		}, func(w io.Writer, tokens []schema.Token) error {
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
	f.DurationVar(&life, "life", 0, "how long the token is valid; 90 days by default")
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

func tokenRotate(r *remote) *cobra.Command {
	var overlap time.Duration
	cmd := &cobra.Command{Use: "rotate TOKEN", Short: "Rotate the secret of a token; the old one stays valid for a while", Args: names("TOKEN")}
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old secret stays valid; 0s ends it now")
	return action(r, cmd, func(ctx context.Context, c *client.Client, args []string) (t schema.NewToken, err error) {
		found, err := findToken(ctx, c, args[0])
		if err != nil {
			return t, err
		}
		if overlap != overlap.Truncate(time.Second) {
			return t, usageError{fmt.Errorf("--overlap %v: use whole seconds", overlap)}
		}
		return t, c.Do(ctx, http.MethodPost, ours+"/tokens/"+url.PathEscape(found.ID)+"/rotate", nil, schema.Rotation{OverlapSeconds: int(overlap / time.Second)}, &t)
	}, showSecret)
}

func tokenDelete(r *remote) *cobra.Command {
	return action(r, &cobra.Command{Use: "delete TOKEN", Short: "Delete a token; it is invalid at once", Args: names("TOKEN")},
		func(ctx context.Context, c *client.Client, args []string) (t schema.Token, err error) {
			if t, err = findToken(ctx, c, args[0]); err != nil {
				return t, err
			}
			return t, c.Do(ctx, http.MethodDelete, ours+"/tokens/"+url.PathEscape(t.ID), nil, nil, nil)
		}, say(func(t schema.Token) string { return "Token " + shown(t.Name) + " deleted." }))
}
