package own

import (
	"fmt"
	"strconv"

	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

const defaultAuditPage = 100

// listAudit gives records in their order: those after a number, or the last ones.
func (f *face) listAudit(r *api.Request) ([]manage.AuditRecord, error) {
	limit, after := defaultAuditPage, uint64(0)
	for _, name := range []string{"limit", "last"} {
		if !r.Query.Has(name) {
			continue
		}
		n, err := strconv.Atoi(r.Query.Get(name))
		if err != nil || n < 1 || n > manage.MaxAuditPage {
			return nil, api.Query(name, "is out of range", fmt.Sprintf("1 to %d", manage.MaxAuditPage))
		}
		limit = n
	}
	switch seq := f.manage.State().Seq(); {
	case r.Query.Has("after") && r.Query.Has("last"):
		return nil, api.Query("last", "does not go with after", "say one of the two")
	case r.Query.Has("after"):
		n, err := strconv.ParseUint(r.Query.Get("after"), 10, 64)
		if err != nil {
			return nil, api.Query("after", "is not the number of a record", "0 for all of them")
		}
		after = n
	case r.Query.Has("last") && seq > uint64(limit):
		after = seq - uint64(limit)
	}
	return f.manage.Audit(r.Context(), r.By, after, limit)
}

func (f *face) verifyAudit(r *api.Request) (schema.Verified, error) {
	n, head, err := f.manage.VerifyAudit(r.Context(), r.By)
	return schema.Verified{Records: n, Head: head}, err
}
