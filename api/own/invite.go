package own

import (
	"errors"
	"net/http"

	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

func shownInvites(i manage.Invites, used int) schema.Invites {
	return schema.Invites{ID: i.ID, Name: i.Name, Event: schema.Optional(i.Event), Lane: schema.Optional(i.Lane), Count: i.Count, Uses: i.Uses, Used: used,
		ExpiresOn: i.ExpiresOn.UTC(), CreatedOn: i.CreatedOn.UTC(), CreatedBy: i.CreatedBy}
}

func (f *face) listInvites(r *api.Request) ([]schema.Invites, error) {
	all, err := f.manage.Invites(r.By, zoneID(r), roomID(r))
	out := make([]schema.Invites, len(all))
	for i, one := range all {
		used, err := f.manage.InviteUses(r.Context(), one)
		if err != nil {
			return nil, err
		}
		out[i] = shownInvites(one, used)
	}
	return out, err
}

func (f *face) createInvites(r *api.Request, b schema.InvitesSpec) (schema.NewInvites, error) {
	spec := manage.InviteSpec{Name: b.Name, Event: anteroom.EventID(schema.Value(b.Event)), Lane: b.Lane, Count: b.Count, Uses: 1}
	if b.Uses != nil {
		spec.Uses = *b.Uses
	}
	if b.ExpiresOn != nil {
		spec.ExpiresOn = b.ExpiresOn.UTC().Truncate(time.Microsecond)
	}
	made, codes, err := f.manage.CreateInvites(r.Context(), r.By, zoneID(r), roomID(r), spec)
	return schema.NewInvites{Invites: shownInvites(made, 0), Codes: codes}, err
}

func (f *face) deleteInvites(r *api.Request) (schema.Deleted, error) {
	id := r.PathValue("invites")
	return deleted(id), f.manage.DeleteInvites(r.Context(), r.By, zoneID(r), roomID(r), id)
}

// revokeInvite takes what is left of one code.
func (f *face) revokeInvite(r *api.Request, b schema.InviteCode) (schema.Invites, error) {
	batch, err := f.manage.RevokeInvite(r.Context(), r.By, zoneID(r), roomID(r), b.Code)
	if errors.Is(err, manage.ErrNoCode) {
		err = api.Refuse(http.StatusNotFound, api.CodeNotFound, "The room has no such invite code, or it has expired")
	}
	if err != nil {
		return schema.Invites{}, err
	}
	used, err := f.manage.InviteUses(r.Context(), batch)
	return shownInvites(batch, used), err
}
