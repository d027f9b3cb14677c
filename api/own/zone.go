package own

import (
	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
)

// shownZone is a zone's JSON form, with the number of its rooms that the caller may see.
func (f *face) shownZone(r *api.Request) func(anteroom.Zone) api.Members {
	rooms := map[string]int{}
	if all, err := f.manage.Rooms(r.By, ""); err == nil {
		for i := range all {
			rooms[all[i].Zone]++
		}
	}
	return func(z anteroom.Zone) api.Members {
		return api.Members{
			{Name: "id", Value: z.ID}, {Name: "name", Value: z.Name}, {Name: "search_engine_crawler_bypass", Value: z.SearchEngineCrawlerBypass},
			{Name: "rooms", Value: rooms[z.Name]}, {Name: "created_on", Value: moment(z.CreatedOn)}, {Name: "modified_on", Value: moment(z.ModifiedOn)},
		}
	}
}

func (f *face) oneZone(r *api.Request) func(anteroom.Zone, error) (api.Answer, error) {
	return func(z anteroom.Zone, err error) (api.Answer, error) {
		if err != nil {
			return api.Answer{}, err
		}
		return api.Answer{Result: f.shownZone(r)(z)}, nil
	}
}

func (f *face) listZones(r *api.Request) (api.Answer, error) {
	return part(r, f.manage.Zones(r.By), f.shownZone(r))
}

func (f *face) getZone(r *api.Request) (api.Answer, error) {
	return f.oneZone(r)(f.manage.Zone(r.By, zoneID(r)))
}

func (f *face) createZone(r *api.Request) (api.Answer, error) {
	o, err := body(r, "name")
	if err != nil {
		return api.Answer{}, err
	}
	name, err := o.Get("name").Text()
	if err != nil {
		return api.Answer{}, err
	}
	return f.oneZone(r)(f.manage.CreateZone(r.Context(), r.By, name))
}

func (f *face) changeZone(r *api.Request) (api.Answer, error) {
	o, err := body(r, "search_engine_crawler_bypass")
	if err != nil {
		return api.Answer{}, err
	}
	v := o.Get("search_engine_crawler_bypass")
	on, err := v.Bool()
	if err != nil {
		return api.Answer{}, err
	}
	return f.oneZone(r)(f.manage.ChangeZone(r.Context(), r.By, zoneID(r), func(z *anteroom.Zone) error {
		if v.Sent() {
			z.SearchEngineCrawlerBypass = on
		}
		return nil
	}))
}

func (f *face) deleteZone(r *api.Request) (api.Answer, error) {
	return deleted(zoneID(r)), f.manage.DeleteZone(r.Context(), r.By, zoneID(r))
}
