package config

import (
	"reflect"

	"github.com/anteroom/anteroom/config/strict"
)

// SchemaURL is where the schema of this version is published: put it into the first line
// of a file, as "# yaml-language-server: $schema=…", for help while writing.
const SchemaURL = "https://raw.githubusercontent.com/anteroom/anteroom/main/config/schema.json"

// Schema returns the JSON Schema (draft 2020-12) of the file. It is stricter than [Load]
// nowhere, and Load sees more: files, and values that must fit each other.
func Schema() []byte {
	return strict.Schema(reflect.TypeFor[document](), SchemaURL, "Anteroom configuration")
}
