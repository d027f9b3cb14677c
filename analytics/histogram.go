package analytics

import hdr "github.com/HdrHistogram/hdrhistogram-go"

// Histogram is a distribution of durations in milliseconds, three digits exact.
type Histogram struct{ h *hdr.Histogram }
