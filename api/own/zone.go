package own

import (
	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
)

// shownZone is a zone's JSON form, with the number of its rooms that the caller may see.
func (f *face) shownZone(r *api.Request) func(anteroom.Zone) schema.Zone {
	rooms := map[string]int{}
	if all, err := f.manage.Rooms(r.By, ""); err == nil {
		for i := range all {
			rooms[all[i].Zone]++
		}
	}
	return func(z anteroom.Zone) schema.Zone {
		return schema.Zone{ZoneName: schema.ZoneName{ID: z.ID, Name: z.Name}, SearchEngineCrawlerBypass: z.SearchEngineCrawlerBypass, Rooms: rooms[z.Name],
			CreatedOn: moment(z.CreatedOn), ModifiedOn: moment(z.ModifiedOn)}
	}
}

func (f *face) oneZone(r *api.Request) func(anteroom.Zone, error) (schema.Zone, error) {
	return func(z anteroom.Zone, err error) (schema.Zone, error) {
		if err != nil {
			return schema.Zone{}, err
		}
		return f.shownZone(r)(z), nil
	}
}

func (f *face) listZones(r *api.Request) ([]anteroom.Zone, func(anteroom.Zone) schema.Zone, error) {
	return f.manage.Zones(r.By), f.shownZone(r), nil
}

func (f *face) getZone(r *api.Request) (schema.Zone, error) {
	return f.oneZone(r)(f.manage.Zone(r.By, zoneID(r)))
}

func (f *face) createZone(r *api.Request, b schema.ZoneSpec) (schema.Zone, error) {
	return f.oneZone(r)(f.manage.CreateZone(r.Context(), r.By, b.Name))
}

func (f *face) changeZone(r *api.Request, p patch[schema.ZoneSettings]) (schema.Zone, error) {
	return f.oneZone(r)(f.manage.ChangeZone(r.Context(), r.By, zoneID(r), func(z *anteroom.Zone) error {
		s := schema.ZoneSettings{SearchEngineCrawlerBypass: z.SearchEngineCrawlerBypass}
		err := p.over(&s, schema.ZoneSettings{})
		z.SearchEngineCrawlerBypass = s.SearchEngineCrawlerBypass
		return err
	}))
}

func (f *face) deleteZone(r *api.Request) (schema.Deleted, error) {
	return deleted(zoneID(r)), f.manage.DeleteZone(r.Context(), r.By, zoneID(r))
}
