package own

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// shownToken is a token's JSON form. No secret is in it.
func shownToken(t manage.Token) api.Members {
	grants := make([]api.Members, len(t.Grants))
	for i, g := range t.Grants {
		grants[i] = api.Members{{Name: "permission", Value: g.Permission}, {Name: "zone", Value: optional(g.Zone)}, {Name: "room", Value: optional(g.Room)}}
	}
	from := make([]string, len(t.Networks))
	for i, n := range t.Networks {
		from[i] = n.String()
	}
	secrets := make([]api.Members, len(t.Secrets))
	for i, s := range t.Secrets {
		secrets[i] = api.Members{{Name: "prefix", Value: s.Prefix}, {Name: "created_on", Value: moment(s.CreatedOn)}, {Name: "expires_on", Value: moment(s.ExpiresOn)}}
	}
	return api.Members{
		{Name: "id", Value: t.ID}, {Name: "name", Value: t.Name}, {Name: "grants", Value: grants}, {Name: "networks", Value: from},
		{Name: "created_on", Value: moment(t.CreatedOn)}, {Name: "created_by", Value: t.CreatedBy}, {Name: "expires_on", Value: moment(t.ExpiresOn)},
		{Name: "last_used_on", Value: moment(t.LastUsed)}, {Name: "secrets", Value: secrets},
	}
}

// withSecret is the one answer that has a secret, and what clients send of it that know no
// bearer tokens.
func withSecret(t manage.Token, secret string, err error) (api.Answer, error) {
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: append(shownToken(t), api.Member{Name: "secret", Value: secret}, api.Member{Name: "auth_key", Value: manage.AuthKey(secret)})}, nil
}

func (f *face) listTokens(r *api.Request) (api.Answer, error) {
	all, err := f.manage.Tokens(r.By)
	if err != nil {
		return api.Answer{}, err
	}
	return part(r, all, shownToken)
}

func (f *face) getToken(r *api.Request) (api.Answer, error) {
	all, err := f.manage.Tokens(r.By)
	if err != nil {
		return api.Answer{}, err
	}
	for _, t := range all {
		if string(t.ID) == r.Param("token") {
			return api.Answer{Result: shownToken(t)}, nil
		}
	}
	return api.Answer{}, api.NotFound()
}

func (f *face) createToken(r *api.Request) (api.Answer, error) {
	o, err := body(r, "name", "grants", "networks", "expires_on")
	if err != nil {
		return api.Answer{}, err
	}
	var spec manage.TokenSpec
	if spec.Name, err = o.Get("name").Text(); err != nil {
		return api.Answer{}, err
	}
	if spec.Grants, err = grants(o.Get("grants")); err != nil {
		return api.Answer{}, err
	}
	if spec.Networks, err = networks(o.Get("networks")); err != nil {
		return api.Answer{}, err
	}
	switch v := o.Get("expires_on"); {
	case v.Sent() && v.Null():
		spec.NeverExpires = true
	case v.Sent():
		text, err := v.Text()
		if err != nil {
			return api.Answer{}, err
		}
		if spec.ExpiresOn, err = anteroom.Stamp(text).Time(); err != nil {
			return api.Answer{}, v.Fault(err.Error(), "")
		}
	}
	return withSecret(f.manage.CreateToken(r.Context(), r.By, spec))
}

func grants(v api.Value) ([]manage.Grant, error) {
	values, err := v.Array(manage.MaxGrants)
	if err != nil {
		return nil, err
	}
	var out []manage.Grant
	for _, one := range values {
		o, err := one.Object()
		if err != nil {
			return nil, err
		}
		if err := o.Only("permission", "zone", "room"); err != nil {
			return nil, err
		}
		var texts [3]string
		for i, name := range []string{"permission", "zone", "room"} {
			if texts[i], err = o.Get(name).Text(); err != nil {
				return nil, err
			}
		}
		out = append(out, manage.Grant{Permission: manage.Permission(texts[0]), Zone: anteroom.ZoneID(texts[1]), Room: anteroom.RoomID(texts[2])})
	}
	return out, nil
}

func (f *face) rotateToken(r *api.Request) (api.Answer, error) {
	o, err := body(r, "overlap_seconds")
	if err != nil {
		return api.Answer{}, err
	}
	v := o.Get("overlap_seconds")
	n, err := v.Int()
	if err != nil {
		return api.Answer{}, err
	}
	if most := int(manage.MaxTokenOverlap / time.Second); !v.Sent() || n < 0 || n > most {
		return api.Answer{}, api.Invalid("overlap_seconds", "is missing or out of range", fmt.Sprintf("0 to %d: how long the secret of now stays good", most))
	}
	return withSecret(f.manage.RotateToken(r.Context(), r.By, manage.TokenID(r.Param("token")), time.Duration(n)*time.Second))
}

func (f *face) deleteToken(r *api.Request) (api.Answer, error) {
	id := manage.TokenID(r.Param("token"))
	return deleted(id), f.manage.DeleteToken(r.Context(), r.By, id)
}

func (f *face) rotateKeys(r *api.Request) (api.Answer, error) {
	return api.Answer{}, f.manage.RotateKeys(r.Context(), r.By)
}
