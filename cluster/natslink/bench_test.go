//go:build unix

package natslink

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("size=%d/writers=%d", size, writers), func(b *testing.B) {
				l := open(b, Config{Dir: b.TempDir()})
				record := make([]byte, size)
				b.SetBytes(int64(size))
				work := make(chan struct{})
				failed := make(chan error, writers)
				b.ResetTimer()
				for range writers {
					go func() {
						for range work {
							if err := l.Append(context.Background(), record); err != nil {
								failed <- err
								return
							}
						}
						failed <- nil
					}()
				}
				for range b.N {
					work <- struct{}{}
				}
				close(work)
				for range writers {
					if err := <-failed; err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkPut(b *testing.B) {
	l := open(b, Config{Dir: b.TempDir()})
	value := make([]byte, 4<<10)
	for i := range b.N {
		if _, err := l.Put(b.Context(), fmt.Sprintf("room.%d", i%100), value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	l := open(b, Config{Dir: b.TempDir()})
	if _, err := l.Put(b.Context(), "a", make([]byte, 4<<10)); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := l.Get(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplay reports the time of one record.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{64, 4 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			const records = 20_000
			l := open(b, Config{Dir: b.TempDir()})
			record := make([]byte, size)
			for range records {
				if err := l.Append(b.Context(), record); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(size))
			b.ResetTimer()
			for n := 0; n < b.N; n += records {
				if err := l.Replay(b.Context(), func(time.Time, []byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	l := open(b, Config{Dir: dir})
	for i := range 1000 {
		if _, err := l.Put(b.Context(), fmt.Sprintf("room.%d", i), make([]byte, 1<<10)); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		l := open(b, Config{Dir: dir})
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
