package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/server"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/pass"
)

// passKey is what an edge verifies passes with.
type passKey struct {
	ID     string `json:"kid"`
	Alg    string `json:"alg"`
	Secret string `json:"secret,omitempty"`
}

// keyPassCommand shows what edges verify passes with.
func keyPassCommand(data *string, form *output) *cobra.Command {
	var asPEM bool
	var edge string
	cmd := &cobra.Command{
		Use:   "pass",
		Short: "Show what edges verify passes with",
		Long: `Show the keys with which edges (proxies, CDNs, applications) verify passes: the names of the public
keys, with --pem the keys, with --edge the secrets of an edge that cannot verify public-key
signatures. The first one signs. A secret makes passes for the rooms with this pass_edge:
keep it like a password.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if server.IsCluster(*data) {
				if edge == "" {
					return notInAFile(*data, "every host that Anteroom serves has the public keys in /.well-known/anteroom/pass.pem")
				}
				return notInAFile(*data, "a backup has them too. With the admin address of a core and an empty directory DIR, run\n"+
					"  umask 077; anteroom backup --keys --api URL - | gunzip | jq -r 'select(.key == \"keys.json\").text' > DIR/keys.json\n"+
					"  anteroom key pass --edge "+edge+" --data DIR")
			}
			ring, err := ticket.Load(server.KeyFile(*data))
			if err != nil {
				return err
			}
			keys, err := pass.Of(ring)
			if err != nil {
				return err
			}
			if asPEM {
				_, err := cmd.OutOrStdout().Write(keys.PEM())
				return err
			}
			list := []passKey{}
			if edge == "" {
				for _, id := range keys.IDs() {
					list = append(list, passKey{ID: id, Alg: "ES256"})
				}
				return put(form, cmd.OutOrStdout(), list, func(w io.Writer, list []passKey) error {
					t := newTable(w, "KID", "ALG")
					for _, k := range list {
						t.row(k.ID, k.Alg)
					}
					return t.Flush()
				})
			}
			secrets, err := keys.Edge(edge)
			if err != nil {
				return err
			}
			for _, s := range secrets {
				list = append(list, passKey{s.ID, "HS256", s.Text})
			}
			return put(form, cmd.OutOrStdout(), list, func(w io.Writer, list []passKey) error {
				t := newTable(w, "KID", "ALG", "SECRET")
				for _, k := range list {
					t.row(k.ID, k.Alg, k.Secret)
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&asPEM, "pem", false, "the public keys as PEM blocks")
	cmd.Flags().StringVar(&edge, "edge", "", "the secrets of the edge with this `name`, for HS256")
	cmd.MarkFlagsMutuallyExclusive("pem", "edge")
	return cmd
}
