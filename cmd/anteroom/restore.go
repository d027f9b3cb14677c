package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/own/schema"
)

func restoreCommand() *cobra.Command {
	var confirmed bool
	cmd := &cobra.Command{Use: "restore FILE", Short: "Replace all data with that of a backup", Args: names("FILE"),
		Long: `Replace all zones, rooms, events, rules, lists and tokens with those of a backup, and the ticket
keys if the backup includes them. Rooms of the configuration file stay, and so does the token that
this command uses. The audit log continues. Tokens that were deleted or rotated since the backup are
valid again: check them with anteroom token list.`,
		Example: `  anteroom restore shop.backup --replace`}
	r := remoteFlags(cmd)
	cmd.Flags().BoolVar(&confirmed, "replace", false, "confirm that existing data is replaced")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !confirmed {
			return usageError{fmt.Errorf("restore replaces all existing data: make a backup first, then pass --replace to confirm")}
		}
		c, err := r.client()
		if err != nil {
			return err
		}
		in := cmd.InOrStdin()
		if args[0] != "-" {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			in = file
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), transferTime)
		defer cancel()
		var got schema.Restored
		if err := c.Upload(ctx, ours+"/restore", url.Values{"confirm": {"replace"}}, in, "application/gzip", &got); err != nil {
			return advise(err)
		}
		if !r.people() {
			return r.data(cmd.OutOrStdout(), got)
		}
		keys := "The ticket keys are as they were."
		if got.Keys {
			keys = "The ticket keys are those of the backup."
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "Restored the backup of %s: %s, %s, %s, %s. %s\n", got.Made.Format(time.RFC3339),
			count(got.Zones, "zone"), count(got.Rooms, "room"), count(got.Lists, "list"), count(got.Tokens, "token"), keys)
		return err
	}
	return cmd
}
