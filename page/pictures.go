package page

// icon is an arch with an open door, as a data URL: a file of its own would be a request
// that has to wait, too.
const icon = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%23345' d='M2 16V8a6 6 0 0112 0v8z'/%3E%3Cpath fill='%23fc6' d='M4 16V8a4 4 0 018 0v8z'/%3E%3Cpath fill='%23a63' d='M4 16V8q0-2 4-2v10z'/%3E%3C/svg%3E"

// picture shows where the light is: behind a door ajar, and around one that is shut while
// nobody is let in.
func picture(st state) string {
	leaf, knob := "M66 122V60a34 34 0 0134-34l-8 16v92z", "86"
	if st == held || st == rejected || st.static() || st.waitsForStart() {
		leaf, knob = "M68 121V60a32 32 0 0164 0v61z", "122"
	}
	return `<svg class="door" viewBox="0 0 200 140" aria-hidden="true" focusable="false"><defs>` +
		`<linearGradient id="g" x1="0" y1="0" x2="0" y2="1"><stop class="l1" offset="0"/><stop class="l2" offset="1"/></linearGradient></defs>` +
		`<path class="wall" d="M58 122V60a42 42 0 0184 0v62z"/><path fill="url(#g)" d="M66 122V60a34 34 0 0168 0v62z"/>` +
		`<path class="glow" d="M66 122h68l36 18H44z"/><path class="leaf" d="` + leaf + `"/><circle class="knob" cx="` + knob + `" cy="86" r="2.5"/>` +
		`<path class="floor" d="M10 122h48M142 122h48"/></svg>`
}
