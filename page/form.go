package page

import "html"

// Field is one of a form.
type Field struct{ Name, Value string }

// maxFormHTML bounds the fields as the page holds them, in bytes.
const maxFormHTML = 48 << 10

// appendForm writes that a form was not sent, its fields for the script, which says so in place of that,
// and the script. The form has no address of its own: it goes to that of the page.
func (b *builtin) appendForm(dst []byte, v *View) []byte {
	var fields []byte
	if !stateOf(&v.Decision).static() {
		for _, f := range v.Form {
			fields = append(fields, `<input type="hidden" name="`+html.EscapeString(f.Name)+`" value="`+html.EscapeString(f.Value)+`">`...)
		}
	}
	dst = append(dst, `<p class="note" id="unsent" data-resend="`+b.resend+`">`+b.unsent+`</p>`...)
	if len(fields) > 0 && len(fields) <= maxFormHTML {
		dst = append(dst, `<form id="form" method="post" hidden>`...)
		dst = append(dst, fields...)
		dst = append(dst, `</form>`...)
	}
	return append(dst, "<script>"+library().form+"</script>"...)
}
