package main

import (
	"context"
	"encoding/csv"
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
	"github.com/anteroom/anteroom/gateway/route"
)

func inviteCommand(r *remote) *cobra.Command {
	cmd := group("invite", "Make and revoke invite codes")
	cmd.Long = `Make and revoke invite codes. With a code, visitors join the queue of a room or event that has
invite_only, or move up to a lane. Codes are printed once, as CSV; Anteroom keeps only their hashes.
docs/invites.md explains more.`
	cmd.Example = `  anteroom room invite create example.com/checkout --count 500 > codes.csv
  anteroom room invite create example.com/checkout --count 1 --uses 200 --event presale --name newsletter
  anteroom room invite create example.com/checkout --count 500 --link https://example.com/checkout > codes.csv
  anteroom room invite create example.com/checkout --count 100 --lane members > codes.csv
  anteroom room invite list example.com/checkout
  anteroom room invite revoke example.com/checkout K7QM-2XHP-9D4T-W3FN`
	cmd.AddCommand(inviteList(r), inviteCreate(r), inviteRevoke(r), inviteDelete(r))
	return cmd
}

func inviteList(r *remote) *cobra.Command {
	var events []event
	return on(r, &cobra.Command{Use: "list ROOM", Short: "List the batches of invite codes of a room", Args: names("ROOM")}, findRoom,
		func(ctx context.Context, c *client.Client, rm room, _ []string) (all []schema.Invites, err error) {
			if events, err = every[event](ctx, c, rm.of(published)+"/events", nil); err != nil {
				return nil, err
			}
			return all, c.Do(ctx, http.MethodGet, rm.of(ours)+"/invites", nil, nil, &all)
		}, func(w io.Writer, _ room, all []schema.Invites) error {
			t := newTable(w, "NAME", "CODES", "USES EACH", "USED", "EXPIRES", "EVENT", "LANE", "ID")
			for _, one := range all {
				during := ""
				if one.Event != nil {
					during = "(deleted)"
					if i := slices.IndexFunc(events, func(e event) bool { return e.ID == string(*one.Event) }); i >= 0 {
						during = events[i].Name
					}
				}
				t.row(one.Name, one.Count, one.Uses, one.Used, moment(&one.ExpiresOn), during, schema.Value(one.Lane), one.ID)
			}
			return t.Flush()
		})
}

func inviteCreate(r *remote) *cobra.Command {
	var name, event, lane, link string
	var count, uses int
	var life time.Duration
	cmd := &cobra.Command{Use: "create ROOM", Short: "Make invite codes and print them as CSV, once", Args: names("ROOM")}
	f := cmd.Flags()
	f.IntVar(&count, "count", 0, "number of codes to make, at most 10000")
	f.IntVar(&uses, "uses", 1, "number of visitors who can use each code")
	f.StringVar(&event, "event", "", "accept the codes only while this `event` of the room is active")
	f.StringVar(&lane, "lane", "", "the codes are for this `lane` of the room")
	f.StringVar(&name, "name", "", "who the codes are for")
	f.DurationVar(&life, "expires-in", 0, "how long the codes are valid, at most 8784h; 30 days, or until the end of the event if that is later, if you leave it out")
	f.StringVar(&link, "link", "", "add a column with links to this `URL`, which fill in the code")
	needs(cmd, "count")
	return on(r, cmd, findRoom, func(ctx context.Context, c *client.Client, rm room, _ []string) (made schema.NewInvites, err error) {
		if _, err := linkTo(link, ""); err != nil {
			return made, usageError{err}
		}
		if link != "" && !rm.covers(link) {
			return made, usageError{fmt.Errorf("--link %q is not in room %s, so it would not ask for a code: use a page below %s", link, rm, rm.places())}
		}
		body := map[string]any{"name": name, "count": count, "uses": uses}
		if cmd.Flags().Changed("expires-in") {
			body["expires_on"] = time.Now().Add(life).UTC().Format(time.RFC3339)
		}
		if event != "" {
			e, err := findEvent(ctx, c, rm, event)
			if err != nil {
				return made, err
			}
			body["event"] = e.ID
		}
		if lane != "" {
			body["lane"] = lane
		}
		return made, c.Do(ctx, http.MethodPost, rm.of(ours)+"/invites", nil, body, &made)
	}, func(w io.Writer, _ room, made schema.NewInvites) error {
		out := csv.NewWriter(w)
		row := []string{"code"}
		if link != "" {
			row = append(row, "link")
		}
		if made.Lane != nil {
			row = append(row, "lane")
		}
		out.Write(row)
		for _, code := range made.Codes {
			row := []string{code}
			if to, _ := linkTo(link, code); to != "" {
				row = append(row, to)
			}
			if made.Lane != nil {
				row = append(row, *made.Lane)
			}
			out.Write(row)
		}
		out.Flush()
		return out.Error()
	})
}

// linkTo returns the link that fills in a code at an address.
func linkTo(address, code string) (string, error) {
	if address == "" {
		return "", nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
		return "", fmt.Errorf("--link %q is not the URL of a page: write it like https://example.com/checkout", address)
	}
	if u.RawQuery = strings.TrimSuffix(u.RawQuery, "&"); u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += anteroom.InviteQuery + "." + code
	return u.String(), nil
}

// covers reports whether the page at a URL is in the room.
func (r room) covers(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.ContainsFunc(r.Routes, func(rt schema.Route) bool {
		t, err := route.NewTable(route.Config{Rooms: []anteroom.Room{{Routes: []anteroom.Route{{Host: rt.Host, Path: rt.Path}}}}})
		if err != nil {
			return false
		}
		m, err := t.Lookup(u.Host, u.RequestURI())
		return err == nil && m != nil
	})
}

// places are the hosts and paths of the room, as a sentence has them.
func (r room) places() string {
	var all []string
	for _, rt := range r.Routes {
		all = append(all, rt.Host+rt.Path)
	}
	return strings.Join(all, " or ")
}

func inviteRevoke(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "revoke ROOM CODE", Short: "Revoke one code, with all uses that are left", Args: names("ROOM", "CODE")}, findRoom,
		func(ctx context.Context, c *client.Client, rm room, args []string) (batch schema.Invites, err error) {
			return batch, c.Do(ctx, http.MethodPost, rm.of(ours)+"/invites/revoke", nil, schema.InviteCode{Code: args[0]}, &batch)
		}, func(w io.Writer, rm room, batch schema.Invites) error {
			_, err := fmt.Fprintf(w, "The code of batch %s of room %s is revoked.\n", shown(batch.ID), shown(rm.String()))
			return err
		})
}

func inviteDelete(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "delete ROOM ID", Short: "Revoke the unused codes of a batch", Args: names("ROOM", "ID")}, findRoom,
		func(ctx context.Context, c *client.Client, rm room, args []string) (d schema.Deleted, err error) {
			return d, c.Do(ctx, http.MethodDelete, rm.of(ours)+"/invites/"+url.PathEscape(args[0]), nil, nil, &d)
		}, func(w io.Writer, rm room, d schema.Deleted) error {
			_, err := fmt.Fprintf(w, "The unused codes of batch %s of room %s are revoked.\n", shown(d.ID), shown(rm.String()))
			return err
		})
}
