package main

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
)

func zoneCommand() *cobra.Command {
	cmd := group("zone", "Manage zones, the domains that rooms belong to")
	r := remoteFlags(cmd)
	list := action(r, &cobra.Command{Use: "list", Short: "List the zones", Args: noArgs},
		func(ctx context.Context, c *client.Client, _ []string) ([]schema.Zone, error) {
			return every[schema.Zone](ctx, c, ours+"/zones", nil)
		}, showZones)
	create := action(r, &cobra.Command{Use: "create NAME", Short: "Create a zone", Args: names("NAME"),
		Example: "  anteroom zone create example.com"},
		func(ctx context.Context, c *client.Client, args []string) (z schema.Zone, err error) {
			return z, c.Do(ctx, http.MethodPost, ours+"/zones", nil, schema.ZoneSpec{Name: args[0]}, &z)
		}, say(func(z schema.Zone) string { return zoneCalled(z) + " has the id " + string(z.ID) + "." }))
	var bypass bool
	set := &cobra.Command{Use: "set ZONE", Short: "Change a zone", Args: names("ZONE"),
		Example: "  anteroom zone set example.com --search-engine-crawler-bypass=false"}
	set.Flags().BoolVar(&bypass, "search-engine-crawler-bypass", false, "let verified search-engine crawlers bypass every room of the zone")
	needs(set, "search-engine-crawler-bypass")
	on(r, set, findZone, func(ctx context.Context, c *client.Client, z schema.Zone, _ []string) (schema.Zone, error) {
		return z, c.Do(ctx, http.MethodPatch, zonePath(z), nil, schema.ZoneSettings{SearchEngineCrawlerBypass: bypass}, &z)
	}, tell[schema.Zone](func(z schema.Zone) string { return zoneCalled(z) + " changed." }))
	remove := removal(r, &cobra.Command{Use: "delete ZONE", Short: "Delete a zone that has no rooms", Args: names("ZONE")}, findZone, zonePath, zoneCalled)
	cmd.AddCommand(list, create, set, remove)
	return cmd
}

func zoneCalled(z schema.Zone) string { return "Zone " + shown(z.Name) }

func zonePath(z schema.Zone) string { return ours + "/zones/" + url.PathEscape(string(z.ID)) }

func showZones(w io.Writer, zones []schema.Zone) error {
	t := newTable(w, "ZONE", "ID", "ROOMS", "CRAWLERS BYPASS")
	for _, z := range zones {
		t.row(z.Name, z.ID, z.Rooms, z.SearchEngineCrawlerBypass)
	}
	return t.Flush()
}
