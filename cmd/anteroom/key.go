package main

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/own/schema"
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
		if server.IsCluster(data) {
			return notInAFile(data, `it cannot list them. "anteroom key rotate --api URL" rotates them, with the admin address of a core`)
		}
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
	r := &remote{output: form}
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Rotate the key; existing tickets stay valid",
		Long: `Rotate the key that seals tickets. A running process detects the changed file and loads it.
Tickets sealed with older keys stay valid until they expire (25 hours at most), so no visitor
loses a place or a session. After a leak, use --forget: every visitor then starts over.

The nodes of a cluster share their keys: use --api with the admin address of a core.`,
		Example: `  anteroom key rotate --data /var/lib/anteroom
  anteroom key rotate --api http://10.0.0.1:8081`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("api") {
				if cmd.Flags().Changed("data") {
					return usageError{errors.New("--api and --data exclude each other: --api rotates the key of the process that answers there")}
				}
				return rotateRemote(cmd, r, forget)
			}
			if server.IsCluster(data) {
				again := "anteroom key rotate --api URL"
				if forget {
					again += " --forget"
				}
				return notInAFile(data, `run "`+again+`" with the admin address of a core`)
			}
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
	r.flags(rotate.Flags())
	rotate.Flags().BoolVar(&forget, "forget", false, "drop the older keys: all existing tickets become invalid")
	cmd.AddCommand(list, rotate, keyPassCommand(&data, form))
	return cmd
}

// notInAFile is for the data directory of a node of a cluster: what file of keys is in it was read at its first start only.
func notInAFile(data, instead string) error {
	return anteroom.Errorf(anteroom.Conflict, "%s belongs to a node of a cluster, whose keys are in the store of the cluster and not in a file: %s", data, instead)
}

// rotateRemote rotates the key of a running process or cluster.
func rotateRemote(cmd *cobra.Command, r *remote, forget bool) error {
	c, err := r.client()
	if err != nil {
		return err
	}
	var none schema.None
	if err := c.Do(cmd.Context(), http.MethodPost, ours+"/keys/rotate", nil, schema.KeyRotation{Forget: forget}, &none); err != nil {
		return advise(err)
	}
	return put(r.output, cmd.OutOrStdout(), none, say(func(schema.None) string {
		if forget {
			return "The key was rotated, and all earlier keys are dropped: every visitor starts over."
		}
		return "The key was rotated. In a cluster, the new one seals tickets in about 10 seconds."
	}))
}
