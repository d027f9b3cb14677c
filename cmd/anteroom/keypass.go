package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/server"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/pass"
)

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
			type one struct {
				ID     string `json:"kid"`
				Alg    string `json:"alg"`
				Secret string `json:"secret,omitempty"`
			}
			list := []one{}
			if edge == "" {
				for _, id := range keys.IDs() {
					list = append(list, one{ID: id, Alg: "ES256"})
				}
			} else {
				secrets, err := keys.Edge(edge)
				if err != nil {
					return err
				}
				for _, s := range secrets {
					list = append(list, one{s.ID, "HS256", s.Text})
				}
			}
			if !form.people() {
				return form.data(cmd.OutOrStdout(), list)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
			if edge == "" {
				fmt.Fprintln(w, "KID\tALG")
			} else {
				fmt.Fprintln(w, "KID\tALG\tSECRET")
			}
			for _, k := range list {
				if edge == "" {
					fmt.Fprintf(w, "%s\t%s\n", k.ID, k.Alg)
				} else {
					fmt.Fprintf(w, "%s\t%s\t%s\n", k.ID, k.Alg, k.Secret)
				}
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asPEM, "pem", false, "the public keys as PEM blocks")
	cmd.Flags().StringVar(&edge, "edge", "", "the secrets of the edge with this `name`, for HS256")
	cmd.MarkFlagsMutuallyExclusive("pem", "edge")
	return cmd
}
