// Package qr draws QR codes (ISO/IEC 18004) of addresses: bytes, error correction level L, the smallest version, always mask 0. A reader
// takes any mask; choosing one matters for print and for texts with patterns.
package qr

import "rsc.io/qr/coding"

// Code is a square of modules.
type Code struct{ *coding.Code }

// Dark reports whether the module in a column and row is dark.
func (c *Code) Dark(x, y int) bool { return c.Black(x, y) }

// Of returns the code of a text, the smallest there is; nil if the text has more than 2,953 bytes.
func Of(text string) *Code {
	bytes := coding.String(text)
	for version := coding.Version(coding.MinVersion); version <= coding.MaxVersion; version++ {
		if bytes.Bits(version) > 8*version.DataBytes(coding.L) {
			continue
		}
		plan, err := coding.NewPlan(version, coding.L, 0)
		if err != nil {
			return nil // only for a version that there is not
		}
		code, err := plan.Encode(bytes)
		if err != nil {
			return nil // only for a text that is too long
		}
		return &Code{code}
	}
	return nil
}
