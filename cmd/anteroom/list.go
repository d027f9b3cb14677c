package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
)

func listCommand() *cobra.Command {
	cmd := group("list", "Manage lists of addresses, networks and hosts for rules")
	cmd.Example = `  anteroom list create offices --kind ip
  anteroom list add offices 192.0.2.0/24 2001:db8::/48
  anteroom list show offices`
	r := remoteFlags(cmd)
	cmd.AddCommand(listAll(r), listShow(r), listCreate(r), listDelete(r), listAdd(r), listRemove(r))
	return cmd
}

// valueList is a list that rules can use. The published API calls its place rules/lists.
type valueList struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	Description string `json:"description"`
	Items       int    `json:"num_items"`

	account string
}

func (l valueList) path() string {
	return published + "/accounts/" + url.PathEscape(l.account) + "/rules/lists/" + url.PathEscape(l.ID)
}

// account returns the id of the one account.
func account(ctx context.Context, c *client.Client) (string, error) {
	all, err := every[struct {
		ID string `json:"id"`
	}](ctx, c, published+"/accounts", nil)
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "", anteroom.Errorf(anteroom.Unavailable, "%s has %d accounts, but an Anteroom has one", c.URL(), len(all))
	}
	return all[0].ID, nil
}

func valueLists(ctx context.Context, c *client.Client) ([]valueList, error) {
	a, err := account(ctx, c)
	if err != nil {
		return nil, err
	}
	var all []valueList
	if err := c.Do(ctx, http.MethodGet, published+"/accounts/"+url.PathEscape(a)+"/rules/lists", nil, nil, &all); err != nil {
		return nil, err
	}
	for i := range all {
		all[i].account = a
	}
	return all, nil
}

func findList(ctx context.Context, c *client.Client, meant string) (valueList, error) {
	all, err := valueLists(ctx, c)
	if err != nil {
		return valueList{}, err
	}
	return pick(all, "list", meant, func(l valueList) (id, name string) { return l.ID, l.Name })
}

func listAll(r *remote) *cobra.Command {
	return action(r, &cobra.Command{Use: "list", Short: "List the lists", Args: noArgs},
		func(ctx context.Context, c *client.Client, _ []string) ([]valueList, error) {
			return valueLists(ctx, c)
		},
		func(w io.Writer, all []valueList) error {
			t := newTable(w, "LIST", "KIND", "ITEMS", "DESCRIPTION", "ID")
			for _, l := range all {
				t.row(l.Name, l.Kind, l.Items, l.Description, l.ID)
			}
			return t.Flush()
		})
}

// listItem is a value of a list, under the member that its kind has.
type listItem struct {
	ID       string    `json:"id,omitempty"`
	IP       string    `json:"ip,omitempty"`
	ASN      int       `json:"asn,omitempty"`
	Hostname *listHost `json:"hostname,omitempty"`
	Comment  string    `json:"comment"`
}

type listHost struct {
	URL string `json:"url_hostname"`
}

func (i listItem) value() string {
	switch {
	case i.Hostname != nil:
		return i.Hostname.URL
	case i.ASN != 0:
		return strconv.Itoa(i.ASN)
	}
	return i.IP
}

// items reads a list's values, which come in pages with cursors.
func (l valueList) items(ctx context.Context, c *client.Client) ([]listItem, error) {
	var all []listItem
	cursor := ""
	for range client.MaxPages {
		q := url.Values{"per_page": {"500"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var page []listItem
		next, err := c.Page(ctx, l.path()+"/items", q, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" || next == cursor {
			return all, nil
		}
		cursor = next
	}
	return nil, anteroom.Errorf(anteroom.Unavailable, "list %q has more than %d pages", l.Name, client.MaxPages)
}

func listShow(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "show LIST", Short: "Show the entries of a list", Args: names("LIST")}, findList,
		func(ctx context.Context, c *client.Client, l valueList, _ []string) ([]listItem, error) {
			return l.items(ctx, c)
		}, func(w io.Writer, _ valueList, items []listItem) error {
			t := newTable(w, "VALUE", "COMMENT")
			for _, i := range items {
				t.row(i.value(), i.Comment)
			}
			return t.Flush()
		})
}

func listCreate(r *remote) *cobra.Command {
	var kind, description string
	cmd := &cobra.Command{Use: "create NAME", Short: "Create a list", Args: names("NAME")}
	cmd.Flags().StringVar(&kind, "kind", anteroom.ListOfIPs, "ip, asn or hostname")
	cmd.Flags().StringVar(&description, "description", "", "free text")
	return action(r, cmd, func(ctx context.Context, c *client.Client, args []string) (l valueList, err error) {
		a, err := account(ctx, c)
		if err != nil {
			return l, err
		}
		return l, c.Do(ctx, http.MethodPost, published+"/accounts/"+url.PathEscape(a)+"/rules/lists", nil,
			map[string]any{"name": args[0], "kind": kind, "description": description}, &l)
	}, say(func(l valueList) string { return "List " + shown(l.Name) + " has the id " + l.ID + "." }))
}

func listDelete(r *remote) *cobra.Command {
	return removal(r, &cobra.Command{Use: "delete LIST", Short: "Delete a list that no rule uses", Args: names("LIST")},
		findList, valueList.path, func(l valueList) string { return "List " + shown(l.Name) })
}

// itemOf makes the item of a value.
func (l valueList) itemOf(value, comment string) (listItem, error) {
	item := listItem{Comment: comment}
	switch l.Kind {
	case anteroom.ListOfASNs:
		n, err := strconv.Atoi(value)
		if err != nil {
			return item, usageError{fmt.Errorf("%q is not the number of an autonomous system (AS)", value)}
		}
		item.ASN = n
	case anteroom.ListOfHostnames:
		item.Hostname = &listHost{value}
	default:
		item.IP = value
	}
	return item, nil
}

func listAdd(r *remote) *cobra.Command {
	var comment string
	cmd := &cobra.Command{Use: "add LIST VALUE...", Short: "Add entries to a list", Args: names("LIST", "VALUE...")}
	cmd.Flags().StringVar(&comment, "comment", "", "comment for each entry")
	return on(r, cmd, findList, func(ctx context.Context, c *client.Client, l valueList, values []string) (result any, err error) {
		var items []listItem
		for _, v := range values {
			item, err := l.itemOf(v, comment)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return result, c.Do(ctx, http.MethodPost, l.path()+"/items", nil, items, &result)
	}, tell[any](func(valueList) string { return "List changed." }))
}

func listRemove(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "remove LIST VALUE...", Short: "Remove entries from a list", Args: names("LIST", "VALUE...")}, findList,
		func(ctx context.Context, c *client.Client, l valueList, values []string) (result any, err error) {
			there, err := l.items(ctx, c)
			if err != nil {
				return nil, err
			}
			type id struct {
				ID string `json:"id"`
			}
			var gone []id
			for _, v := range values {
				i := slices.IndexFunc(there, func(item listItem) bool { return item.value() == v })
				if i < 0 {
					return nil, anteroom.Errorf(anteroom.NotFound, "list %s has no entry %q; anteroom list show %s shows its entries", l.Name, v, l.Name)
				}
				gone = append(gone, id{there[i].ID})
			}
			return result, c.Do(ctx, http.MethodDelete, l.path()+"/items", nil, map[string]any{"items": gone}, &result)
		}, tell[any](func(valueList) string { return "List changed." }))
}
