package own

import (
	"fmt"
	"net/http"
	"time"

	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// transferTime bounds a backup on its way.
const transferTime = 10 * time.Minute

// backup sends everything that is managed here; with keys=true the ticket keys, too. What
// breaks off is no whole backup, and a restore notices.
func (f *face) backup(w http.ResponseWriter, r *api.Request) error {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTime)) // what has none keeps its own
	out := &download{ResponseWriter: w, name: "anteroom-" + f.now().UTC().Format("20060102T150405Z") + ".backup"}
	err := f.manage.Backup(r.Context(), r.By, out, r.Query.Get("keys") == "true")
	if err != nil && out.begun {
		panic(http.ErrAbortHandler) // the connection breaks, so that nobody takes it for whole
	}
	return err
}

// download writes the headers of a file with its first byte: until then there can be an
// error.
type download struct {
	http.ResponseWriter
	name  string
	begun bool
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	if !d.begun {
		d.begun = true
		h := d.Header()
		h.Set("Content-Type", "application/gzip")
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", d.name))
		h.Set("Cache-Control", "no-store")
	}
	return d.ResponseWriter.Write(p)
}

// restore puts a backup in the place of everything. The query names what it does once more,
// so that no other file that is sent to the wrong address does anything.
func (f *face) restore(w http.ResponseWriter, r *api.Request) error {
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Now().Add(transferTime)) // what has none keeps its own
	c.SetWriteDeadline(time.Now().Add(2 * transferTime))
	got, err := f.manage.Restore(r.Context(), r.By, http.MaxBytesReader(w, r.Body, manage.MaxBackup))
	if err != nil {
		return err
	}
	api.SendAnswer(w, api.Answer{Result: got})
	return nil
}
