package config

import (
	"reflect"

	"github.com/anteroom/anteroom/config/strict"
)

// schemaURL is where the schema of this version is published: put it into the first line
// of a file, as "# yaml-language-server: $schema=…", for help while writing.
const schemaURL = "https://raw.githubusercontent.com/anteroom/anteroom/main/config/schema.json"

// schema returns the JSON Schema (draft 2020-12) of the file. It is stricter than [Load]
// nowhere, and Load sees more: files, and values that must fit each other.
func schema() []byte {
	return strict.Schema(reflect.TypeFor[document](), schemaURL, "Anteroom configuration")
}
