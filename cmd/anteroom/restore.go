package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/manage"
)

func restoreCommand() *cobra.Command {
	var confirmed bool
	cmd := &cobra.Command{Use: "restore FILE", Short: "Replace all data with that of a backup", Args: names("FILE"),
		Long: `Replace all zones, rooms, events, rules, lists and tokens with those of a backup, and the ticket
keys if the backup includes them. Tickets that are valid now stay valid. Rooms of the configuration
file stay, and so does the token that this command uses. The audit log continues. Tokens that were
deleted or rotated since the backup are valid again: check them with anteroom token list.`,
		Example: `  anteroom restore shop.backup --replace`}
	r := remoteFlags(cmd)
	cmd.Flags().BoolVar(&confirmed, "replace", false, "confirm that existing data is replaced")
	return action(r, cmd, func(ctx context.Context, c *client.Client, args []string) (got manage.Restored, err error) {
		if !confirmed {
			return got, usageError{fmt.Errorf("restore replaces all existing data: make a backup first, then pass --replace to confirm")}
		}
		in := cmd.InOrStdin()
		if args[0] != "-" {
			file, err := os.Open(args[0])
			if err != nil {
				return got, err
			}
			defer file.Close()
			in = file
		}
		ctx, cancel := context.WithTimeout(ctx, transferTime)
		defer cancel()
		return got, c.Upload(ctx, ours+"/restore", url.Values{"confirm": {"replace"}}, in, "application/gzip", &got)
	}, say(func(got manage.Restored) string {
		keys := "The ticket keys are as they were."
		if got.Keys {
			keys = "Tickets under the keys of the backup are valid."
		}
		return fmt.Sprintf("Restored the backup of %s: %s, %s, %s, %s. %s", got.Made.Format(time.RFC3339),
			count(got.Zones, "zone"), count(got.Rooms, "room"), count(got.Lists, "list"), count(got.Tokens, "token"), keys)
	}))
}
