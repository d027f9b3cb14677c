package rest

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/internal/field"
)

// settingFields are the settings of a zone.
var settingFields = members[anteroom.Zone](field.Of(reflect.TypeFor[anteroom.Zone]()))

func settingsTag(z *anteroom.Zone) string { return tagOf(settingFields.Of(z)) }

func oneSettings(z anteroom.Zone, err error) (api.Answer, error) {
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: settingFields.Of(&z), ETag: settingsTag(&z)}, nil
}

func (a *API) getSettings(r *api.Request) (api.Answer, error) {
	return oneSettings(a.zoneOf(r))
}

func (a *API) changeSettings(write func(*anteroom.Zone, api.Object) error) operation {
	return a.inZone(func(r *api.Request, zone anteroom.ZoneID, o api.Object) (api.Answer, error) {
		return oneSettings(a.manage.ChangeZone(r.Context(), r.By, zone, matched(r, settingsTag, write, o)))
	})
}

// shownZone is a zone's JSON form. What is said of name servers and plans is for clients that
// expect it: there are none here.
func (a *API) shownZone(z *anteroom.Zone) api.Members {
	account := a.shownAccount()[:2]
	return api.Members{
		{Name: "id", Value: z.ID},
		{Name: "name", Value: z.Name},
		{Name: "status", Value: "active"},
		{Name: "paused", Value: false},
		{Name: "type", Value: "full"},
		{Name: "development_mode", Value: 0},
		{Name: "name_servers", Value: []string{}},
		{Name: "original_name_servers", Value: []string{}},
		{Name: "original_registrar", Value: nil},
		{Name: "original_dnshost", Value: nil},
		{Name: "created_on", Value: stamp(z.CreatedOn)},
		{Name: "modified_on", Value: stamp(z.ModifiedOn)},
		{Name: "activated_on", Value: stamp(z.CreatedOn)},
		{Name: "meta", Value: api.Members{}},
		{Name: "owner", Value: append(slices.Clone(account), api.Member{Name: "type", Value: "organization"})},
		{Name: "account", Value: account},
		{Name: "permissions", Value: []string{}},
	}
}

func (a *API) oneZone(z anteroom.Zone, err error) (api.Answer, error) {
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: a.shownZone(&z)}, nil
}

// listZones knows the filters name and account.name, with the published operators, status and account.id.
func (a *API) listZones(r *api.Request) (api.Answer, error) {
	zones := a.manage.Zones(r.By)
	account, accountName := a.manage.Account()
	status, in := r.Query.Get("status"), r.Query.Get("account.id")
	named, err := nameFilter(r, "name")
	if err != nil {
		return api.Answer{}, err
	}
	inNamed, err := nameFilter(r, "account.name")
	if err != nil {
		return api.Answer{}, err
	}
	zones = slices.DeleteFunc(slices.Clone(zones), func(z anteroom.Zone) bool {
		return !named(z.Name) || !inNamed(strings.ToLower(accountName)) || status != "" && status != "active" || in != "" && in != account
	})
	return page(r, a.shownZone)(zones, nil)
}

// nameFilter returns which names, in lower case, a parameter of the query accepts.
func nameFilter(r *api.Request, parameter string) (func(name string) bool, error) {
	filter := r.Query.Get(parameter)
	if filter == "" {
		return func(string) bool { return true }, nil
	}
	operator, value, ok := strings.Cut(filter, ":")
	if !ok {
		operator, value = "equal", filter
	}
	value = strings.ToLower(value)
	switch operator {
	case "equal":
		return func(name string) bool { return name == value }, nil
	case "not_equal":
		return func(name string) bool { return name != value }, nil
	case "starts_with":
		return func(name string) bool { return strings.HasPrefix(name, value) }, nil
	case "ends_with":
		return func(name string) bool { return strings.HasSuffix(name, value) }, nil
	case "contains":
		return func(name string) bool { return strings.Contains(name, value) }, nil
	}
	return nil, api.Query(parameter, "has an operator that is not known", "equal, not_equal, starts_with, ends_with or contains, like contains:example")
}

func (a *API) createZone(r *api.Request, o api.Object) (api.Answer, error) {
	name, err := o.Get("name").Text()
	if err != nil {
		return api.Answer{}, err
	}
	owner, err := o.Get("account").Object()
	if err != nil {
		return api.Answer{}, err
	}
	id, err := owner.Get("id").Text()
	if err != nil {
		return api.Answer{}, err
	}
	if account, _ := a.manage.Account(); id != "" && id != account {
		return api.Answer{}, owner.Get("id").Fault("is not the account", "leave it out: there is one account, see GET "+Prefix+"/accounts")
	}
	return a.oneZone(a.manage.CreateZone(r.Context(), r.By, name))
}

func (a *API) getZone(r *api.Request) (api.Answer, error) { return a.oneZone(a.zoneOf(r)) }

func (a *API) deleteZone(r *api.Request) (api.Answer, error) {
	z, err := a.zoneOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	if err := a.manage.DeleteZone(r.Context(), r.By, z.ID); err != nil {
		return api.Answer{}, err
	}
	return deleted(string(z.ID)), nil
}

func (a *API) shownAccount() api.Members {
	id, name := a.manage.Account()
	return api.Members{
		{Name: "id", Value: id},
		{Name: "name", Value: name},
		{Name: "type", Value: "standard"},
		{Name: "settings", Value: api.Members{{Name: "enforce_twofactor", Value: false}}},
	}
}

func (a *API) listAccounts(r *api.Request) (api.Answer, error) {
	accounts := []api.Members{a.shownAccount()}
	if _, own := a.manage.Account(); r.Query.Get("name") != "" && r.Query.Get("name") != own {
		accounts = nil
	}
	return page(r, func(m *api.Members) api.Members { return *m })(accounts, nil)
}

func (a *API) getAccount(*api.Request) (api.Answer, error) {
	return api.Answer{Result: a.shownAccount()}, nil
}

// inAccount does what is asked of the one account.
func (a *API) inAccount(do operation) operation {
	return func(r *api.Request) (api.Answer, error) {
		if id, _ := a.manage.Account(); r.PathValue("account") != id {
			return api.Answer{}, noZone(r)
		}
		return do(r)
	}
}

// verifyToken says that the token of the request is a good one: no other gets here.
func (a *API) verifyToken(r *api.Request) (api.Answer, error) {
	token, err := a.manage.OwnToken(r.By)
	if err != nil {
		return api.Answer{}, err
	}
	const ofEnvironment = "00000000000000000000000000000000" // clients expect an id
	result := api.Members{{Name: "id", Value: cmp.Or(string(token.ID), ofEnvironment)}, {Name: "status", Value: "active"}}
	if !token.ExpiresOn.IsZero() {
		result = append(result, api.Member{Name: "expires_on", Value: stamp(token.ExpiresOn)})
	}
	return api.Answer{Result: result, Messages: []api.Message{{Code: api.CodeDenied, Message: "This API Token is valid and active"}}}, nil
}
