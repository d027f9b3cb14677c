package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/engine"
)

// shuffleRecord is the record of a shuffle as everybody gets it: bytes in hexadecimal digits.
type shuffleRecord struct {
	schema.Shuffle

	// ID and Place are what a visitor's receipt has in addition.
	ID    string `json:"id,omitempty"`
	Place int    `json:"place,omitempty"`
}

// verification is what came of recomputing a shuffle.
type verification struct {
	Commitment bool     `json:"commitment_holds"` // the seed is the one that was promised
	Entries    bool     `json:"entries_hold"`     // the ids are those that the record names
	Visitors   int      `json:"visitors"`
	Places     []placed `json:"places"`
}

type placed struct {
	Visitor string `json:"visitor"` // as it was asked for
	ID      string `json:"id"`
	Place   int    `json:"place"` // from 1
}

// maxIDs bounds a shuffle that is recomputed: the longest line there can be.
const maxIDs = anteroom.MaxLine

func verifyCommand() *cobra.Command {
	var ids, commitment string
	cmd := &cobra.Command{
		Use:   "verify RECORD [VISITOR...]",
		Short: "Verify a shuffle: recompute every place from its record",
		Long: `Recompute a shuffle from its record. RECORD and --ids are files, - for standard input, or URLs;
with the URL of a record, --ids is not needed. A receipt that a visitor saved is a record, too.
Anyone can download record and ids from the application's own host, below
/.well-known/anteroom/draw/; operators also get them with anteroom event shuffle. VISITOR is the
code that the waiting page shows, or a whole id. You have to trust nothing except the commitment:
note it during the prequeue, and pass it with --commitment.`,
		Example: `  anteroom event shuffle example.com/checkout drop --out shuffle
  anteroom verify shuffle/record.json --ids shuffle/ids.bin 3f9a1-c07be`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s needs RECORD; see %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return nil
		},
	}
	r := &remote{output: outputFlags(cmd.Flags())}
	cmd.Flags().StringVar(&r.token, "token", "", "API `token`, for a URL of the API")
	cmd.Flags().StringVar(&ids, "ids", "", "`file` or URL with the ids, 16 bytes or one line of text each")
	cmd.Flags().StringVar(&commitment, "commitment", "", "the commitment that was shown before the start")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		rec, all, err := r.shuffle(cmd, args[0], ids)
		if err != nil {
			return advise(err)
		}
		if commitment != "" && !strings.EqualFold(commitment, rec.Commitment) {
			return fmt.Errorf("the record has the commitment %s, but %s was shown before the start: this is not the promised shuffle", shown(rec.Commitment), shown(commitment))
		}
		visitors := args[1:]
		if len(visitors) == 0 && rec.Place > 0 {
			visitors = []string{rec.ID}
		}
		v, err := verifyShuffle(rec, all, visitors)
		if err != nil {
			return err
		}
		err = put(r.output, cmd.OutOrStdout(), v, func(w io.Writer, v verification) error { return v.show(w) })
		switch {
		case err != nil:
			return err
		case !v.Commitment:
			return errors.New("the seed does not belong to the commitment: the order was not fixed in advance")
		case !v.Entries:
			return errors.New("the ids are not those that were shuffled: some are missing, added, changed or repeated")
		case rec.Place > 0 && len(args) == 1 && v.Places[0].Place != rec.Place:
			return fmt.Errorf("the receipt says place %d, but the shuffle gave place %d", rec.Place, v.Places[0].Place)
		}
		return nil
	}
	return cmd
}

// shuffle gets a record and its ids from where they are.
func (r *remote) shuffle(cmd *cobra.Command, from, idsFrom string) (rec shuffleRecord, ids []anteroom.ID, err error) {
	const mostRecord = 1 << 20
	b, err := r.fetch(cmd, from, mostRecord)
	if err != nil {
		return rec, nil, err
	}
	var enveloped struct {
		Result *shuffleRecord `json:"result"`
	}
	if err = json.Unmarshal(b, &enveloped); err == nil && enveloped.Result != nil {
		rec = *enveloped.Result
	} else if err = json.Unmarshal(b, &rec); err != nil {
		return rec, nil, fmt.Errorf("%s is not the record of a shuffle: %w", from, err)
	}
	if !rec.Done {
		return rec, nil, errors.New("the shuffle of this record has not happened yet; its seed is published when it has")
	}
	if idsFrom == "" {
		// Always of whom the record is from: a path that it names could lead elsewhere.
		if !isURL(from) {
			return rec, nil, usageError{fmt.Errorf("--ids is missing: download the list of ids from %s, next to the record", cmp.Or(schema.Value(rec.IDs), "…/ids"))}
		}
		idsFrom = strings.TrimRight(from, "/") + "/ids"
	}
	list, err := r.fetch(cmd, idsFrom, maxIDs*40)
	if err != nil {
		return rec, nil, err
	}
	if ids, err = idsOf(list); err != nil {
		return rec, nil, fmt.Errorf("%s: %w", idsFrom, err)
	}
	return rec, ids, nil
}

// idsOf reads a list of ids: 16 bytes each, as they are downloaded, or lines of hexadecimal
// digits.
func idsOf(list []byte) ([]anteroom.ID, error) {
	const size = len(anteroom.ID{})
	var ids []anteroom.ID
	if len(bytes.Trim(list, "0123456789abcdefABCDEF \r\n")) == 0 {
		for i, line := range bytes.Fields(list) {
			b, err := hex.DecodeString(string(line))
			if err != nil || len(b) != size {
				return nil, fmt.Errorf("line %d is %q, not 32 hexadecimal digits", i+1, short(string(line)))
			}
			ids = append(ids, anteroom.ID(b))
		}
	} else {
		if len(list)%size != 0 {
			return nil, fmt.Errorf("%d bytes are not a whole number of ids of %d bytes: the list is truncated, or not a list of ids", len(list), size)
		}
		for b := range slices.Chunk(list, size) {
			ids = append(ids, anteroom.ID(b))
		}
	}
	if len(ids) > maxIDs {
		return nil, fmt.Errorf("the list has %d ids, more than any queue can hold (%d)", len(ids), maxIDs)
	}
	return ids, nil
}

func isURL(s string) bool { return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") }

// fetch reads a file, standard input or a URL.
func (r *remote) fetch(cmd *cobra.Command, from string, most int64) ([]byte, error) {
	if isURL(from) {
		// The token of the environment is for our API and not for any address that is checked.
		c, err := client.New(client.Config{URL: from, Token: r.token, UserAgent: "anteroom/" + versionString()})
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		ctx, cancel := context.WithTimeout(cmd.Context(), transferTime)
		defer cancel()
		if err := c.Download(ctx, "", nil, &b, most); err != nil {
			return nil, err
		}
		return []byte(b.String()), nil
	}
	return readInput(from, cmd.InOrStdin(), most)
}

// verifyShuffle recomputes a shuffle. An error says that the record cannot be read; what does
// not hold stands in the result.
func verifyShuffle(rec shuffleRecord, ids []anteroom.ID, visitors []string) (v verification, err error) {
	digest := func(name, s string) (out [32]byte, err error) {
		b, err := hex.DecodeString(s)
		if err != nil || len(b) != len(out) {
			return out, fmt.Errorf("%s of the record is %q, not 64 hexadecimal digits", name, short(s))
		}
		return [32]byte(b), nil
	}
	commitment, err := digest("commitment", rec.Commitment)
	if err != nil {
		return v, err
	}
	seed, err := digest("seed", schema.Value(rec.Seed))
	if err != nil {
		return v, err
	}
	entries, err := digest("entries", schema.Value(rec.Entries))
	if err != nil {
		return v, err
	}
	v = verification{Commitment: engine.Commitment(seed[:]) == commitment, Entries: engine.Entries(ids) == entries && len(ids) == schema.Value(rec.Count) && !twice(ids), Visitors: len(ids), Places: []placed{}}
	if len(visitors) == 0 {
		return v, nil
	}
	order := engine.Order(engine.ShuffleKey(seed[:], entries), ids)
	for _, asked := range visitors {
		found := false
		for at, i := range order {
			if id := hex.EncodeToString(ids[i][:]); strings.EqualFold(asked, id) || strings.EqualFold(asked, ids[i].Reference()) {
				v.Places = append(v.Places, placed{Visitor: asked, ID: id, Place: at + 1})
				found = true
			}
		}
		if !found {
			return v, anteroom.Errorf(anteroom.NotFound, "no visitor %q took part in the shuffle: use the code that the waiting page shows, like %s, or a whole id", asked, anteroom.ID{}.Reference())
		}
	}
	slices.SortStableFunc(v.Places, func(a, b placed) int { return a.Place - b.Place })
	return v, nil
}

// twice reports whether an id is there more than once: a visitor with two places.
func twice(ids []anteroom.ID) bool {
	sorted := slices.SortedFunc(slices.Values(ids), func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	return len(slices.Compact(sorted)) < len(ids)
}

func (v verification) show(w io.Writer) error {
	commitment, entries := "holds", "hold"
	if !v.Commitment {
		commitment = "DOES NOT HOLD"
	}
	if !v.Entries {
		entries = "DO NOT HOLD"
	}
	fmt.Fprintf(w, "The commitment %s: it was made from the seed that decided the order.\n", commitment)
	_, err := fmt.Fprintf(w, "The entries %s: they were made from these %s.\n", entries, count(v.Visitors, "visitor"))
	for _, p := range v.Places {
		_, err = fmt.Fprintf(w, "%s has place %d of %d.\n", shown(p.Visitor), p.Place, v.Visitors)
	}
	return err
}
