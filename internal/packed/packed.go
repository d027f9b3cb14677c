// Package packed is for texts that would be large in the binary. They are committed as they are read and as a gzip member, and the
// member is embedded; a test of who embeds it holds the one to the other.
package packed

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
)

// Unpack returns what a member holds. It panics for one that is damaged: only a program that was built wrong has one.
func Unpack(member []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(member))
	if err != nil {
		panic("packed: " + err.Error())
	}
	out, err := io.ReadAll(r)
	if err != nil {
		panic("packed: " + err.Error())
	}
	return out
}

// Pack returns a member that holds content, as small as it gets.
func Pack(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a valid level
	w.Write(content)
	w.Close()
	return b.Bytes()
}

// UnpackFiles returns the texts of files by their names.
func UnpackFiles(member []byte) map[string]string {
	var out map[string]string
	if err := json.Unmarshal(Unpack(member), &out); err != nil {
		panic("packed: " + err.Error())
	}
	return out
}

// PackFiles is Pack for texts of files by their names.
func PackFiles(files map[string]string) []byte {
	content, err := json.Marshal(files)
	if err != nil {
		panic("packed: " + err.Error()) // never: strings
	}
	return Pack(content)
}
