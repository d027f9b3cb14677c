package exposition

import (
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// format is a way to write series. The methods append one series each, of the name that is given.
type format interface {
	contentType() string
	// names reports whether each series has its name, and not only its family.
	names() bool
	value(dst []byte, f *Family, name string, v float64, labels []string) []byte
	distribution(dst []byte, f *Family, name string, d *Distribution, labels []string) []byte
	summary(dst []byte, name string, count uint64, sum float64, quantiles []Quantile) []byte
	// family returns what a family is, with all its series.
	family(f *Family, name, help string, series []byte) [][]byte
	end() []byte
}

// text is Prometheus's text format 0.0.4, or OpenMetrics 1.0.0.
type text struct{ open bool }

func (t text) contentType() string {
	if t.open {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

func (text) names() bool     { return true }
func (protobuf) names() bool { return false }

var (
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// start writes the name and the labels of a series; a name of more is that of one label more, for none empty.
func start(dst []byte, f *Family, name string, labels []string, more, value string) []byte {
	dst = append(dst, name...)
	sep := byte('{')
	label := func(name, value string) {
		dst = append(append(append(dst, sep), name...), `="`...)
		dst = append(append(dst, labelEscapes.Replace(strings.ToValidUTF8(value, "\uFFFD"))...), '"')
		sep = ','
	}
	if f != nil {
		for _, i := range f.order {
			label(f.Labels[i], labels[i])
		}
	}
	if more != "" {
		label(more, value)
	}
	if sep == ',' {
		dst = append(dst, '}')
	}
	return append(dst, ' ')
}

// number writes a value, in OpenMetrics as a float always.
func (t text) number(dst []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(dst, "+Inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-Inf"...)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
	if t.open && !strings.ContainsAny(string(dst[at:]), "e.N") {
		dst = append(dst, ".0"...)
	}
	return dst
}

func (t text) value(dst []byte, f *Family, name string, v float64, labels []string) []byte {
	return append(t.number(start(dst, f, name, labels, "", ""), v), '\n')
}

func (t text) distribution(dst []byte, f *Family, name string, d *Distribution, labels []string) []byte {
	example := d.Example
	bucket := func(bound float64, upto uint64) {
		dst = strconv.AppendUint(start(dst, f, name+"_bucket", labels, "le", string(t.number(nil, bound))), upto, 10)
		if t.open && example != nil && example.Value <= bound {
			dst = append(start(append(dst, " # "...), nil, "", nil, "trace_id", example.TraceID), t.number(nil, example.Value)...)
			dst = t.number(append(dst, ' '), float64(example.At.UnixNano())/1e9)
			example = nil
		}
		dst = append(dst, '\n')
	}
	for _, c := range d.Classic {
		bucket(c.Bound, c.Upto)
	}
	bucket(math.Inf(1), d.Count)
	return t.totals(dst, f, name, labels, d.Count, d.Sum)
}

func (t text) totals(dst []byte, f *Family, name string, labels []string, count uint64, sum float64) []byte {
	dst = append(t.number(start(dst, f, name+"_sum", labels, "", ""), sum), '\n')
	return append(strconv.AppendUint(start(dst, f, name+"_count", labels, "", ""), count, 10), '\n')
}

func (t text) summary(dst []byte, name string, count uint64, sum float64, quantiles []Quantile) []byte {
	for _, q := range quantiles {
		dst = append(t.number(start(dst, nil, name, nil, "quantile", string(t.number(nil, q.Quantile))), q.Value), '\n')
	}
	return t.totals(dst, nil, name, nil, count, sum)
}

func (t text) family(f *Family, name, help string, series []byte) [][]byte {
	if t.open && f.Kind == Counter {
		name = strings.TrimSuffix(name, "_total")
	}
	escapes := helpEscapes
	if t.open {
		escapes = labelEscapes
	}
	return [][]byte{[]byte("# HELP " + name + " " + escapes.Replace(help) + "\n# TYPE " + name + " " + string(f.Kind) + "\n"), series}
}

func (t text) end() []byte {
	if t.open {
		return []byte("# EOF\n")
	}
	return nil
}

// protobuf is a sequence of io.prometheus.client.MetricFamily, each with its length before it. The numbers are those of the
// fields in https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto.
type protobuf struct{}

func (protobuf) contentType() string {
	return "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
}

func appendBytes(dst []byte, field protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), b)
}

func appendString(dst []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, field, protowire.BytesType), strings.ToValidUTF8(s, "\uFFFD"))
}

func appendUint(dst []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), v)
}

func appendSint(dst []byte, field protowire.Number, v int64) []byte {
	return appendUint(dst, field, protowire.EncodeZigZag(v))
}

func appendDouble(dst []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, field, protowire.Fixed64Type), math.Float64bits(v))
}

func appendLabel(dst []byte, name, value string) []byte {
	return appendBytes(dst, 1, appendString(appendString(nil, 1, name), 2, value))
}

// metric appends a series with a value of one of the kinds.
func metric(dst []byte, f *Family, labels []string, kind protowire.Number, value []byte) []byte {
	m := make([]byte, 0, 128)
	if f != nil {
		for _, i := range f.order {
			m = appendLabel(m, f.Labels[i], labels[i])
		}
	}
	return appendBytes(dst, 4, appendBytes(m, kind, value))
}

func (protobuf) value(dst []byte, f *Family, _ string, v float64, labels []string) []byte {
	kind := protowire.Number(2)
	if f.Kind == Counter {
		kind = 3
	}
	return metric(dst, f, labels, kind, appendDouble(nil, 1, v))
}

func (protobuf) distribution(dst []byte, f *Family, _ string, d *Distribution, labels []string) []byte {
	h := appendDouble(appendUint(nil, 1, d.Count), 2, d.Sum)
	example := d.Example
	bucket := func(bound float64, upto uint64) {
		b := appendDouble(appendUint(nil, 1, upto), 2, bound)
		if example != nil && example.Value <= bound {
			at := appendUint(appendUint(nil, 1, uint64(example.At.Unix())), 2, uint64(example.At.Nanosecond()))
			b = appendBytes(b, 3, appendBytes(appendDouble(appendLabel(nil, "trace_id", example.TraceID), 2, example.Value), 3, at))
			example = nil
		}
		h = appendBytes(h, 3, b)
	}
	for _, c := range d.Classic {
		bucket(c.Bound, c.Upto)
	}
	if example != nil {
		bucket(math.Inf(1), d.Count) // which is there for its example only
	}
	h = appendUint(appendDouble(appendSint(h, 5, int64(d.Schema)), 6, d.ZeroThreshold), 7, d.Zero)
	h = appendNative(h, 9, 10, d.Negative)
	h = appendNative(h, 12, 13, d.Positive)
	return metric(dst, f, labels, 7, h)
}

// appendNative writes buckets as native histograms have them: runs of neighbors, and each count as the difference from the one
// before.
func appendNative(dst []byte, spans, deltas protowire.Number, buckets []Bucket) []byte {
	next := 0 // the index at which the run that came before ended
	for i := 0; i < len(buckets); {
		run := i + 1
		for run < len(buckets) && buckets[run].Index == buckets[run-1].Index+1 {
			run++
		}
		dst = appendBytes(dst, spans, appendUint(appendSint(nil, 1, int64(buckets[i].Index-next)), 2, uint64(run-i)))
		next = buckets[run-1].Index + 1
		i = run
	}
	before := int64(0)
	for _, b := range buckets {
		dst = appendSint(dst, deltas, int64(b.N)-before)
		before = int64(b.N)
	}
	return dst
}

func (protobuf) summary(dst []byte, _ string, count uint64, sum float64, quantiles []Quantile) []byte {
	s := appendDouble(appendUint(nil, 1, count), 2, sum)
	for _, q := range quantiles {
		s = appendBytes(s, 3, appendDouble(appendDouble(nil, 1, q.Quantile), 2, q.Value))
	}
	return metric(dst, nil, nil, 4, s)
}

// types are the numbers of the kinds.
var types = map[Kind]uint64{Counter: 0, Gauge: 1, Summary: 2, Histogram: 4}

func (protobuf) family(f *Family, name, help string, series []byte) [][]byte {
	head := appendUint(appendString(appendString(nil, 1, name), 2, help), 3, types[f.Kind])
	return [][]byte{append(protowire.AppendVarint(nil, uint64(len(head)+len(series))), head...), series}
}

func (protobuf) end() []byte { return nil }
