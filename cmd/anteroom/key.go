package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/server"
	"github.com/anteroom/anteroom/ticket"
)

// sealingKey is a key without its secret.
type sealingKey struct {
	ID      string    `json:"id"`
	State   string    `json:"state"`
	Created time.Time `json:"created"`
}

func keyCommand() *cobra.Command {
	cmd := group("key", "List and rotate the keys that seal tickets")
	var data string
	cmd.PersistentFlags().StringVar(&data, "data", "./anteroom-data", "data `directory`")
	form := outputFlags(cmd.PersistentFlags())
	show := func(cmd *cobra.Command) error {
		keys, err := ticket.ListFile(server.KeyFile(data))
		if err != nil {
			return err
		}
		list := []sealingKey{}
		for _, k := range keys {
			list = append(list, sealingKey{k.ID, string(k.State), k.Created.UTC()})
		}
		return put(form, cmd.OutOrStdout(), list, func(w io.Writer, list []sealingKey) error {
			t := newTable(w, "KEY", "STATE", "CREATED")
			for _, k := range list {
				t.row(k.ID, k.State, moment(&k.Created))
			}
			return t.Flush()
		})
	}
	list := &cobra.Command{
		Use: "list", Short: "List the keys, without their secrets", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return show(cmd) },
	}
	var forget bool
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Rotate the key; existing tickets stay valid",
		Long: `Rotate the key that seals tickets. A running process detects the changed file and loads it.
Tickets sealed with older keys stay valid until they expire (25 hours at most), so no visitor
loses a place or a session. After a leak, use --forget: every visitor then starts over.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keep := time.Duration(0)
			if forget {
				keep = -1
			}
			if _, err := ticket.RotateFile(server.KeyFile(data), time.Now(), keep); err != nil {
				return err
			}
			return show(cmd)
		},
	}
	rotate.Flags().BoolVar(&forget, "forget", false, "drop the older keys: all existing tickets become invalid")
	cmd.AddCommand(list, rotate, keyPassCommand(&data, form))
	return cmd
}
