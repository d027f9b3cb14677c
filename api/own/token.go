package own

import (
	"time"

	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

// shownToken is a token's JSON form. No secret is in it.
func shownToken(t manage.Token) schema.Token {
	out := schema.Token{ID: string(t.ID), Name: t.Name, Networks: t.Networks, CreatedOn: t.CreatedOn.UTC(), CreatedBy: t.CreatedBy,
		ExpiresOn: moment(t.ExpiresOn), LastUsed: moment(t.LastUsed), Secrets: shownSecrets(t.Secrets)}
	for _, g := range t.Grants {
		out.Grants = append(out.Grants, schema.Grant{Permission: string(g.Permission), Zone: schema.Optional(g.Zone), Room: schema.Optional(g.Room)})
	}
	return out
}

func shownSecrets(all []manage.TokenSecret) []schema.Secret {
	out := make([]schema.Secret, len(all))
	for i, s := range all {
		out[i] = schema.Secret{Prefix: s.Prefix, CreatedOn: s.CreatedOn.UTC(), ExpiresOn: moment(s.ExpiresOn)}
	}
	return out
}

// newToken is the one answer that has a secret, and what clients send of it that know no
// bearer tokens.
func newToken(t manage.Token, secret string, err error) (schema.NewToken, error) {
	return schema.NewToken{Token: shownToken(t), Secret: secret, AuthKey: manage.AuthKey(secret)}, err
}

func (f *face) listTokens(r *api.Request) ([]manage.Token, func(manage.Token) schema.Token, error) {
	all, err := f.manage.Tokens(r.By)
	return all, shownToken, err
}

func (f *face) getToken(r *api.Request) (schema.Token, error) {
	all, err := f.manage.Tokens(r.By)
	if err != nil {
		return schema.Token{}, err
	}
	for _, t := range all {
		if string(t.ID) == r.PathValue("token") {
			return shownToken(t), nil
		}
	}
	return schema.Token{}, api.NotFound()
}

func (f *face) createToken(r *api.Request, p patch[schema.TokenSpec]) (schema.NewToken, error) {
	want := schema.TokenSpec{ExpiresOn: new(time.Time)} // left out it is the default, and null is never
	if err := p.over(&want, schema.TokenSpec{}); err != nil {
		return schema.NewToken{}, err
	}
	spec := manage.TokenSpec{Name: want.Name, Networks: want.Networks, ExpiresOn: schema.Value(want.ExpiresOn), NeverExpires: want.ExpiresOn == nil}
	for _, g := range want.Grants {
		spec.Grants = append(spec.Grants, manage.Grant{Permission: manage.Permission(g.Permission), Zone: schema.Value(g.Zone), Room: schema.Value(g.Room)})
	}
	return newToken(f.manage.CreateToken(r.Context(), r.By, spec))
}

func (f *face) rotateToken(r *api.Request, b schema.Rotation) (schema.NewToken, error) {
	return newToken(f.manage.RotateToken(r.Context(), r.By, manage.TokenID(r.PathValue("token")), time.Duration(b.OverlapSeconds)*time.Second))
}

func (f *face) deleteToken(r *api.Request) (schema.Deleted, error) {
	id := manage.TokenID(r.PathValue("token"))
	return deleted(id), f.manage.DeleteToken(r.Context(), r.By, id)
}

func (f *face) rotateKeys(r *api.Request, b schema.KeyRotation) (schema.None, error) {
	return nil, f.manage.RotateKeys(r.Context(), r.By, b.Forget)
}
