package rest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/internal/field"
	"github.com/anteroom/anteroom/manage"
)

// Bounds of lists beside those of package manage.
const (
	maxListPage     = 500 // items of a list returned at once
	defaultListPage = 100
	// maxOperations is the number of bulk operations whose end is remembered.
	maxOperations = 1000
)

// listFields are a list's members, its items left aside.
var listFields = slices.Concat(
	api.Fields[anteroom.List]{{Name: "id", Get: func(l *anteroom.List) any { return l.ID }}},
	members[anteroom.List](field.Of(reflect.TypeFor[anteroom.List]())),
	api.Fields[anteroom.List]{
		{Name: "num_items", Get: func(l *anteroom.List) any { return len(l.Items) }},
		{Name: "created_on", Get: func(l *anteroom.List) any { return stamp(l.CreatedOn) }},
		{Name: "modified_on", Get: func(l *anteroom.List) any { return stamp(l.ModifiedOn) }},
	},
)

// shownList is a list's JSON form.
func (a *API) shownList(l *anteroom.List) api.Members {
	uses := 0
	for room := range a.manage.State().Rooms() {
		for _, rule := range room.Rules {
			if manage.UsesList(rule.Expression, l.Name) {
				uses++
			}
		}
		for _, lane := range room.Lanes {
			if manage.UsesList(lane.Expression, l.Name) {
				uses++
			}
		}
	}
	return append(listFields.Of(l), api.Member{Name: "num_referencing_filters", Value: uses})
}

func (a *API) oneList(l anteroom.List, err error) (api.Answer, error) {
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: a.shownList(&l), ETag: listTag(&l)}, nil
}

func listTag(l *anteroom.List) string { return tagOf(listFields.Of(l)) }

func listID(r *api.Request) anteroom.ListID { return anteroom.ListID(r.PathValue("list")) }

// listLists returns all lists at once, as published: there are few.
func (a *API) listLists(r *api.Request) (api.Answer, error) {
	lists, err := a.manage.Lists(r.By)
	if err != nil {
		return api.Answer{}, err
	}
	out := make([]api.Members, len(lists))
	for i := range lists {
		out[i] = a.shownList(&lists[i])
	}
	return api.Answer{Result: out}, nil
}

func (a *API) createList(r *api.Request, o api.Object) (api.Answer, error) {
	var l anteroom.List
	if err := listFields.Replace(&l, o); err != nil {
		return api.Answer{}, err
	}
	return a.oneList(a.manage.CreateList(r.Context(), r.By, l))
}

func (a *API) getList(r *api.Request) (api.Answer, error) {
	return a.oneList(a.manage.List(r.By, listID(r)))
}

// changeList changes the description: name and kind are what rules rely on.
func (a *API) changeList(r *api.Request, o api.Object) (api.Answer, error) {
	description, err := o.Get("description").Text()
	if err != nil {
		return api.Answer{}, err
	}
	describe := func(l *anteroom.List, _ api.Object) error {
		l.Description = description
		return nil
	}
	return a.oneList(a.manage.ChangeList(r.Context(), r.By, listID(r), matched(r, listTag, describe, o)))
}

func (a *API) deleteList(r *api.Request) (api.Answer, error) {
	l, err := a.manage.List(r.By, listID(r))
	return remove(r, string(l.ID), err, listTag, func(sure func(*anteroom.List) error) error {
		return a.manage.DeleteList(r.Context(), r.By, l.ID, sure)
	})
}

// shownItem is the JSON form of an item of a list of the kind. Without a comment it has no
// such member: to Terraform's provider "" is not what was not set.
func shownItem(kind string, i *anteroom.ListItem) api.Members {
	value := api.Member{Name: kind, Value: i.Value}
	switch kind {
	case anteroom.ListOfASNs:
		n, _ := strconv.ParseUint(i.Value, 10, 32)
		value.Value = n
	case anteroom.ListOfHostnames:
		value.Value = api.Members{{Name: "url_hostname", Value: i.Value}}
	}
	shown := api.Members{{Name: "id", Value: i.ID}, value}
	if i.Comment != "" {
		shown = append(shown, api.Member{Name: "comment", Value: i.Comment})
	}
	return append(shown, api.Member{Name: "created_on", Value: stamp(i.CreatedOn)}, api.Member{Name: "modified_on", Value: stamp(i.ModifiedOn)})
}

func itemOf(kind string, v api.Value) (item anteroom.ListItem, err error) {
	o, err := v.Object()
	if err != nil {
		return item, err
	}
	if item.Comment, err = o.Get("comment").Text(); err != nil {
		return item, err
	}
	value := o.Get(kind)
	switch kind {
	case anteroom.ListOfASNs:
		n, err := value.Int()
		if err != nil {
			return item, err
		}
		item.Value = strconv.Itoa(n)
	case anteroom.ListOfHostnames:
		host, err := value.Object()
		if err != nil {
			return item, err
		}
		value = host.Get("url_hostname")
		fallthrough
	default:
		if item.Value, err = value.Text(); err != nil {
			return item, err
		}
	}
	if value.Null() {
		return item, value.Fault("is missing", "")
	}
	return item, nil
}

// listItems returns a part of the items. The cursor is the id of the last item of the part
// before.
func (a *API) listItems(r *api.Request) (api.Answer, error) {
	l, err := a.manage.List(r.By, listID(r))
	if err != nil {
		return api.Answer{}, err
	}
	size := defaultListPage
	if s := r.Query.Get("per_page"); s != "" {
		if size, err = strconv.Atoi(s); err != nil || size < 1 || size > maxListPage {
			return api.Answer{}, api.Query("per_page", "is out of range", fmt.Sprintf("1 to %d", maxListPage))
		}
	}
	search := r.Query.Get("search")
	items := slices.DeleteFunc(slices.Clone(l.Items), func(i anteroom.ListItem) bool {
		return !strings.Contains(i.Value, search) && !strings.Contains(i.Comment, search)
	})
	if cursor := r.Query.Get("cursor"); cursor != "" {
		i := slices.IndexFunc(items, func(i anteroom.ListItem) bool { return string(i.ID) == cursor })
		if i < 0 {
			return api.Answer{}, api.Query("cursor", "names an item that does not exist", "start again without a cursor")
		}
		items = items[i+1:]
	}
	after := ""
	if len(items) > size {
		items, after = items[:size], string(items[size-1].ID)
	}
	out := make([]api.Members, len(items))
	for i := range items {
		out[i] = shownItem(l.Kind, &items[i])
	}
	return api.Answer{Result: out, Info: itemsInfo{Cursors: cursors{After: after}, Count: len(out)}}, nil
}

// itemsInfo is the result_info of a list's items.
type itemsInfo struct {
	Cursors cursors `json:"cursors"`
	Count   int     `json:"count"`
}

type cursors struct {
	After string `json:"after,omitempty"`
}

func (a *API) getItem(r *api.Request) (api.Answer, error) {
	l, err := a.manage.List(r.By, listID(r))
	if err != nil {
		return api.Answer{}, err
	}
	i := slices.IndexFunc(l.Items, func(i anteroom.ListItem) bool { return string(i.ID) == r.PathValue("item") })
	if i < 0 {
		return api.Answer{}, api.NotFound()
	}
	return api.Answer{Result: shownItem(l.Kind, &l.Items[i])}, nil
}

// changeItems changes the items of a list. The published API does so later and answers with
// the id of an operation that one can ask about; here it is done when it answers.
func (a *API) changeItems(r *api.Request, change func(*anteroom.List) error) (api.Answer, error) {
	if _, err := a.manage.ChangeList(r.Context(), r.By, listID(r), change); err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: api.Members{{Name: "operation_id", Value: a.operations.done(a.now())}}}, nil
}

func (a *API) addItems(r *api.Request) (api.Answer, error) { return a.writeItems(r, false) }

func (a *API) replaceItems(r *api.Request) (api.Answer, error) { return a.writeItems(r, true) }

// writeItems adds the items of the body, or puts them in the place of all. An item whose value
// is there stays, with the new comment.
func (a *API) writeItems(r *api.Request, replace bool) (api.Answer, error) {
	v, err := r.JSON()
	if err != nil {
		return api.Answer{}, err
	}
	values, err := v.Array(manage.MaxListItems)
	if err != nil {
		return api.Answer{}, err
	}
	from := map[int]int{} // the value of the body that an item comes from
	kind := ""
	answer, err := a.changeItems(r, func(l *anteroom.List) error {
		kind = l.Kind
		old := map[string]anteroom.ListItem{}
		for _, i := range l.Items {
			old[i.Value] = i
		}
		items := slices.Clone(l.Items)
		if replace {
			items = nil
		}
		at := map[string]int{}
		for i := range items {
			at[items[i].Value] = i
		}
		for n, one := range values {
			item, err := itemOf(l.Kind, one)
			if err != nil {
				return err
			}
			if was, ok := old[item.Value]; ok {
				was.Comment = item.Comment
				item = was
			}
			i, ok := at[item.Value]
			if !ok {
				i, items = len(items), append(items, item)
			}
			items[i], at[item.Value], from[i] = item, i, n
		}
		l.Items = items
		return nil
	})
	return answer, api.Rename(err, func(path string) string {
		i, field, ok := indexed("items", path)
		if !ok {
			return path
		}
		if field == "value" {
			field = kind
		}
		return fmt.Sprintf("[%d].%s", from[i], field)
	})
}

func (a *API) deleteItems(r *api.Request, o api.Object) (api.Answer, error) {
	values, err := o.Get("items").Array(manage.MaxListItems)
	if err != nil {
		return api.Answer{}, err
	}
	gone := map[anteroom.ListID]bool{}
	for _, one := range values {
		item, err := one.Object()
		if err != nil {
			return api.Answer{}, err
		}
		id, err := item.Get("id").Text()
		if err != nil {
			return api.Answer{}, err
		}
		gone[anteroom.ListID(id)] = true
	}
	return a.changeItems(r, func(l *anteroom.List) error {
		left := slices.DeleteFunc(slices.Clone(l.Items), func(i anteroom.ListItem) bool { return gone[i.ID] })
		if len(l.Items)-len(left) != len(gone) {
			return api.NotFound()
		}
		l.Items = left
		return nil
	})
}

func (a *API) getOperation(r *api.Request) (api.Answer, error) {
	id := r.PathValue("operation")
	at, ok := a.operations.when(id)
	if !ok {
		return api.Answer{}, api.NotFound()
	}
	return api.Answer{Result: api.Members{{Name: "id", Value: id}, {Name: "status", Value: "completed"}, {Name: "completed", Value: stamp(at)}}}, nil
}

// operations remembers the newest bulk operations. All of them are completed.
type operations struct {
	mu  sync.Mutex
	ids []string
	at  map[string]time.Time
}

func (o *operations) done(now time.Time) (id string) {
	var random [16]byte
	rand.Read(random[:])
	id = hex.EncodeToString(random[:])
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at == nil {
		o.at = map[string]time.Time{}
	}
	if len(o.ids) == maxOperations {
		delete(o.at, o.ids[0])
		o.ids = o.ids[1:]
	}
	o.ids = append(o.ids, id)
	o.at[id] = now
	return id
}

func (o *operations) when(id string) (time.Time, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.at[id]
	return at, ok
}
