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
		Long: `Put what a backup holds in the place of everything that is there: zones, rooms, events, rules,
lists, tokens, and ticket keys if it has them. Rooms of the configuration file stay, and so does
the token that this command uses. The audit log goes on. Tokens that were deleted or rotated since
the backup are valid again as they were then: look at them with anteroom token list.`,
		Example: `  anteroom restore shop.backup --replace`}
	r := remoteFlags(cmd)
	cmd.Flags().BoolVar(&confirmed, "replace", false, "yes, replace what is there")
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
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "Everything is as it was on %s: %s, %s, %s, %s. %s\n", got.Made.Format(time.RFC3339),
			count(got.Zones, "zone"), count(got.Rooms, "room"), count(got.Lists, "list"), count(got.Tokens, "token"), keys)
		return err
	}
	return cmd
}
