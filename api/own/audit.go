package own

import (
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

const defaultAuditPage = 100

// listAudit gives records in their order: those after a number, or the last ones.
func (f *face) listAudit(r *api.Request) ([]manage.AuditRecord, error) {
	if r.Query.Has("after") && r.Query.Has("last") {
		return nil, api.Query("last", "does not go with after", "use one of the two")
	}
	limit, after := integer(r, "limit", defaultAuditPage), integer(r, "after", 0)
	if r.Query.Has("last") {
		limit = integer(r, "last", limit)
		after = max(0, int(f.manage.State().Seq())-limit)
	}
	return f.manage.Audit(r.Context(), r.By, uint64(after), limit)
}

func (f *face) verifyAudit(r *api.Request) (schema.Verified, error) {
	n, head, err := f.manage.VerifyAudit(r.Context(), r.By)
	return schema.Verified{Records: n, Head: head}, err
}
