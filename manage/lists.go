package manage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/rules"
)

const maxListName = 50

// Lists returns the lists in the order of their creation. They are shared and must not be
// changed.
func (m *Manager) Lists(by Caller) ([]anteroom.List, error) {
	if err := by.need(Read, "", ""); err != nil {
		return nil, err
	}
	return m.State().Lists(), nil
}

// List returns a list. It is shared and must not be changed.
func (m *Manager) List(by Caller, id anteroom.ListID) (anteroom.List, error) {
	if err := by.need(Read, "", ""); err != nil {
		return anteroom.List{}, err
	}
	l, err := m.State().list(id)
	if err != nil {
		return anteroom.List{}, err
	}
	return l.List, nil
}

func (s *State) list(id anteroom.ListID) (*storedList, error) {
	return find(s.lists, "list", string(id))
}

// CreateList makes a list. IDs and times are given by us.
func (m *Manager) CreateList(ctx context.Context, by Caller, list anteroom.List) (made anteroom.List, err error) {
	err = m.changeAll(ctx, by, Edit, func(t *tx) error {
		if len(t.old.lists) >= rules.MaxLists {
			return anteroom.Errorf(anteroom.Invalid, "there are already %d lists, the maximum", len(t.old.lists))
		}
		made = list
		made.Items = slices.Clone(list.Items)
		made.ID, made.CreatedOn = anteroom.ListID(newID()), t.now
		return t.setList("list.create", nil, &storedList{List: made, made: t.seq()}, &made)
	})
	return made, err
}

// ChangeList changes a list. An item without an ID is new. What fn does to the ID, the kind
// and the times is ignored; a name that rules use can only be changed with them.
func (m *Manager) ChangeList(ctx context.Context, by Caller, id anteroom.ListID, fn func(*anteroom.List) error) (changed anteroom.List, err error) {
	err = m.changeAll(ctx, by, Edit, func(t *tx) error {
		old, err := t.old.list(id)
		if err != nil {
			return err
		}
		l := old.List
		l.Items = slices.Clone(l.Items)
		if err := fn(&l); err != nil {
			return err
		}
		l.ID, l.Kind, l.CreatedOn, l.ModifiedOn = old.ID, old.Kind, old.CreatedOn, old.ModifiedOn
		if changed = l; reflect.DeepEqual(l, old.List) {
			return nil
		}
		changed.Items = slices.Clone(l.Items)
		if l.Name != old.Name {
			if err := t.old.unused(old.Name); err != nil {
				return err
			}
		}
		return t.setList("list.change", old, &storedList{List: changed, made: old.made}, &changed)
	})
	return changed, err
}

// DeleteList deletes a list that no room uses.
func (m *Manager) DeleteList(ctx context.Context, by Caller, id anteroom.ListID) error {
	return m.changeAll(ctx, by, Edit, func(t *tx) error {
		old, err := t.old.list(id)
		if err != nil {
			return err
		}
		if err := t.old.unused(old.Name); err != nil {
			return err
		}
		t.next.lists = without(t.next.lists, func(l *storedList) bool { return l.ID == id })
		t.note("list.delete", string(id), old.Name, old.List, nil)
		t.drop(listPrefix + string(id))
		return t.next.nameLists()
	})
}

// unused returns an error that names a room which uses a list.
func (s *State) unused(name string) error {
	for _, r := range s.rooms {
		if r.FirstRequestList == name {
			return anteroom.Errorf(anteroom.Invalid, "first_request_list of the waiting room %[2]s in %[3]s is the list %[1]s: change it first", name, r.Name, r.Zone)
		}
		if r.uses(name) {
			return anteroom.Errorf(anteroom.Invalid, "a rule or a lane of the waiting room %[2]s in %[3]s uses the list %[1]s: change it first", name, r.Name, r.Zone)
		}
	}
	return nil
}

// UsesList reports whether an expression contains $name. It also counts names inside quoted texts, which errs on the
// safe side.
func UsesList(expression, name string) bool {
	for rest := expression; ; {
		_, after, found := strings.Cut(rest, "$"+name)
		if !found {
			return false
		}
		if after == "" || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789_", rune(after[0])) {
			return true
		}
		rest = after
	}
}

func (t *tx) setList(operation string, before, after *storedList, shown *anteroom.List) error {
	l := &after.List
	l.ModifiedOn = t.now
	was := map[anteroom.ListID]anteroom.ListItem{}
	if before != nil {
		for _, item := range before.Items {
			was[item.ID] = item
		}
	}
	for i := range l.Items {
		item := &l.Items[i]
		item.Value = canonicalItem(l.Kind, item.Value)
		old, known := was[item.ID]
		delete(was, item.ID) // an ID is used once
		if !known {
			item.ID, item.CreatedOn = anteroom.ListID(newID()), t.now
		}
		if item.ModifiedOn = old.ModifiedOn; known {
			item.CreatedOn = old.CreatedOn
		}
		if *item != old {
			item.ModifiedOn = t.now
		}
	}
	if err := t.old.checkList(l).Err(); err != nil {
		return err
	}
	t.next.lists = put(t.next.lists, after, func(o *storedList) bool { return o.ID == l.ID })
	t.note(operation, string(l.ID), l.Name, before, after)
	*shown = *l
	if err := t.put(listPrefix+string(l.ID), listDocument{t.header(), after.made, *l}); err != nil {
		return err
	}
	return t.relist(l.Name)
}

// relist makes anew what was made from lists, in the rooms that name one.
func (t *tx) relist(name string) error {
	if err := t.next.nameLists(); err != nil {
		return err
	}
	return t.next.relist(name)
}

func (s *State) relist(name string) error {
	rooms := slices.Clone(s.rooms)
	byID := maps.Clone(s.byID)
	for i, r := range rooms {
		if !r.uses(name) {
			continue
		}
		one, err := compile(r.Room, r, s.named, nil)
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "the waiting room %s in %s would no longer work: %w", r.Name, r.Zone, err)
		}
		one.File, one.made = r.File, r.made
		rooms[i], byID[r.ID] = one, one
	}
	s.rooms, s.byID = rooms, byID
	return nil
}

// nameLists makes what rules use of the lists.
func (s *State) nameLists() error {
	s.named = nil
	if len(s.lists) == 0 {
		return nil
	}
	var err error
	s.named, err = rules.NewLists(s.Lists())
	return err
}

func (s *State) checkList(l *anteroom.List) anteroom.Faults {
	var f anteroom.Faults
	add := func(path, problem, fix string) {
		f = append(f, anteroom.Fault{Path: path, Problem: problem, Fix: fix})
	}
	if l.Name == "" || len(l.Name) > maxListName || strings.Trim(l.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		add("name", fmt.Sprintf("%.60q is not a list's name", l.Name), fmt.Sprintf("1 to %d of a-z, 0-9 and _", maxListName))
	}
	if slices.ContainsFunc(s.lists, func(o *storedList) bool { return o.Name == l.Name && o.ID != l.ID }) {
		add("name", fmt.Sprintf("%q is another list's name", l.Name), "names are unique")
	}
	f = append(f, anteroom.CheckDescription(l.Description)...)
	if !slices.Contains([]string{anteroom.ListOfIPs, anteroom.ListOfASNs, anteroom.ListOfHostnames}, l.Kind) {
		add("kind", fmt.Sprintf("%.40q is not known", l.Kind), "ip, asn or hostname")
		return f
	}
	if len(l.Items) > MaxListItems {
		add("items", fmt.Sprintf("has %d members", len(l.Items)), fmt.Sprintf("at most %d", MaxListItems))
		return f
	}
	seen := map[string]int{}
	for i, item := range l.Items {
		at := fmt.Sprintf("items[%d]", i)
		if len(f) >= 20 {
			return f
		}
		if j, twice := seen[item.Value]; twice {
			add(at+".value", fmt.Sprintf("%q is also items[%d]", item.Value, j), "a list contains each value once")
		}
		seen[item.Value] = i
		if len(item.Comment) > anteroom.MaxDescriptionLength {
			add(at+".comment", fmt.Sprintf("has %d bytes", len(item.Comment)), fmt.Sprintf("at most %d", anteroom.MaxDescriptionLength))
		}
	}
	if _, err := rules.NewLists([]anteroom.List{*l}); err != nil && len(f) == 0 {
		more, _ := errors.AsType[anteroom.Faults](err)
		for _, one := range more {
			one.Path = strings.TrimPrefix(one.Path, "lists[0].")
			f = append(f, one)
		}
	}
	return f
}

// canonicalItem spells a value in its one way, if it is one.
func canonicalItem(kind, v string) string {
	switch kind {
	case anteroom.ListOfIPs:
		if a, err := netip.ParseAddr(v); err == nil {
			return a.String()
		}
		if p, err := netip.ParsePrefix(v); err == nil {
			return p.Masked().String()
		}
	case anteroom.ListOfASNs:
		if n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToUpper(v), "AS"), 10, 32); err == nil {
			return strconv.FormatUint(n, 10)
		}
	case anteroom.ListOfHostnames:
		name, wild := strings.CutPrefix(v, "*.")
		if host, err := route.Host(name); err == nil && !hasPort(name) {
			if wild {
				return "*." + host
			}
			return host
		}
	}
	return v
}
