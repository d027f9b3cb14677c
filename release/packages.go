package main

import (
	"io"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // makes what Debian and Ubuntu install
	_ "github.com/goreleaser/nfpm/v2/rpm" // makes what Fedora, RHEL and SUSE install
)

// packages writes a deb and an rpm for each Linux. files/nfpm.yaml says what they hold.
func (r *release) packages() error {
	for _, t := range r.linux() {
		values := map[string]string{"VERSION": r.version, "ARCH": t.arch, "ROOT": r.root, "BUILT": filepath.Dir(t.binary), "PAGES": r.pages}
		config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(r.root, "release/files/nfpm.yaml"), func(name string) string { return values[name] })
		if err != nil {
			return err
		}
		config.MTime = r.time
		for _, script := range []*string{&config.Scripts.PostInstall, &config.Scripts.PreRemove, &config.Scripts.PostRemove} {
			*script = filepath.Join(r.root, "release/files", *script)
		}
		for _, format := range []string{"deb", "rpm"} {
			info, err := config.Get(format)
			if err != nil {
				return err
			}
			if err := nfpm.PrepareForPackager(info, format); err != nil {
				return err
			}
			packager, err := nfpm.Get(format)
			if err != nil {
				return err
			}
			if err := r.write(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
				return err
			}
		}
	}
	return nil
}
