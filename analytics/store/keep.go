package store

import (
	"context"
	"database/sql"
	"os"
	"time"
)

// keptFor is how long rows of a level are kept.
func (s *Store) keptFor(l int) time.Duration {
	switch l {
	case minutes:
		return min(s.cfg.Minutes, s.cfg.Retention)
	case minutes + 1:
		return min(3*s.cfg.Minutes, s.cfg.Retention)
	}
	return s.cfg.Retention
}

// Rows are dropped in multiples of this, so that whatever is made anew of a level has all it is made of.
func dropStep(l int) time.Duration {
	if l == minutes {
		return time.Hour
	}
	return 24 * time.Hour
}

// spared is what is never dropped for the size: the newest.
func spared(l int) time.Duration {
	if l == minutes {
		return 2 * time.Hour
	}
	return 48 * time.Hour
}

// Of MaxSize, the part that is in use when rows begin to be dropped, and what is left then, in
// hundredths.
const (
	highWater = 95
	lowWater  = 90
)

// prune drops what is too old, then what is too much.
func (s *Store) prune(ctx context.Context, now time.Time) error {
	if err := s.dropOld(ctx, now); err != nil {
		return err
	}
	if err := s.dropParts(ctx, now.Add(-partsKept)); err != nil {
		return err
	}
	if err := s.shrink(ctx, now); err != nil {
		return err
	}
	return s.measure(ctx, s.file)
}

const (
	pruneEvery = time.Minute
	// dropAtOnce is how much is dropped in one go. A clock that is years ahead for a minute must not delete the whole past.
	dropAtOnce = 48 * time.Hour
)

// lowerFloors takes back floors that a clock has set which was ahead: everything that comes would count as too old.
func (s *Store) lowerFloors(w *writer, now time.Time) {
	for l := range levels {
		most := minuteOf(now.Add(-min(spared(l), s.keptFor(l))).Truncate(dropStep(l)))
		w.exec(`UPDATE mark SET value = ? WHERE name = ? AND value > ?`, most, floorMark(l), most)
	}
}

func (s *Store) dropOld(ctx context.Context, now time.Time) error {
	w, err := s.file.begin(ctx)
	if err != nil {
		return err
	}
	s.lowerFloors(w, now)
	err = w.commit()
	if w.end(); err != nil {
		return err
	}
	for l := range levels {
		oldest, err := s.file.oldest(ctx, l)
		if err != nil {
			return err
		}
		to := now.Add(-s.keptFor(l))
		if last := oldest.Add(dropAtOnce); !oldest.IsZero() && to.After(last) {
			to = last
		}
		if err := s.drop(ctx, l, minuteOf(to.Truncate(dropStep(l)))); err != nil {
			return err
		}
	}
	return nil
}

// drop drops the rows of a level before a minute.
func (s *Store) drop(ctx context.Context, l int, to int64) error {
	return s.eachRoom(ctx, floorMark(l), to, 20*batch, func(w *writer, no, _ int64) (gone int64) {
		for _, table := range []string{`row_`, `more_`} {
			gone += 1 + w.exec(`DELETE FROM `+table+levels[l].word+` WHERE key >= ? AND key < ?`, keyOf(no, 0), keyOf(no, to))
		}
		return gone
	})
}

// dropParts drops what single processes saw before a time: a minute that comes later than that is too late.
func (s *Store) dropParts(ctx context.Context, before time.Time) error {
	w, err := s.file.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	w.exec(`DELETE FROM part WHERE minute < ?`, minuteOf(before))
	return w.commit()
}

// shrink drops what only late minutes need, then the oldest rows of the finest level that has any, again and again, until the file is
// small enough or only what is spared is left.
func (s *Store) shrink(ctx context.Context, now time.Time) error {
	used, pages, err := s.file.size(ctx)
	if err != nil {
		return err
	}
	if used > s.cfg.MaxSize/100*highWater {
		if err := s.dropParts(ctx, now.Add(-spared(minutes))); err != nil {
			return err
		}
		if used, pages, err = s.file.size(ctx); err != nil {
			return err
		}
		for l := range levels {
			for used > s.cfg.MaxSize/100*lowWater {
				oldest, err := s.file.oldest(ctx, l)
				if err != nil {
					return err
				}
				last := now.Add(-spared(l)).Truncate(dropStep(l))
				if oldest.IsZero() || !oldest.Before(last) {
					break
				}
				to := oldest.Add(max(last.Sub(oldest)/20, dropStep(l))).Truncate(dropStep(l))
				if err := s.drop(ctx, l, minuteOf(to)); err != nil {
					return err
				}
				if used, pages, err = s.file.size(ctx); err != nil {
					return err
				}
				s.log.Info("old analytics were deleted early to stay within analytics.max_size_mib", "resolution", levels[l].word, "before", to)
			}
		}
	}
	if pages <= s.cfg.MaxSize {
		return nil // what is free in the file is used again
	}
	rows, err := s.file.write.QueryContext(ctx, `PRAGMA incremental_vacuum`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// size returns the bytes in use in the file, and all of its bytes.
func (f *file) size(ctx context.Context) (used, all int64, err error) {
	var pages, free, length int64
	for pragma, to := range map[string]*int64{`PRAGMA page_count`: &pages, `PRAGMA freelist_count`: &free, `PRAGMA page_size`: &length} {
		if err := f.write.QueryRowContext(ctx, pragma).Scan(to); err != nil {
			return 0, 0, err
		}
	}
	return (pages - free) * length, pages * length, nil
}

// oldest returns the start of the oldest row of a level; zero when there is none.
func (f *file) oldest(ctx context.Context, l int) (time.Time, error) {
	var minute sql.NullInt64
	err := f.write.QueryRowContext(ctx, `SELECT min((SELECT key & 4294967295 FROM row_`+levels[l].word+
		` WHERE key >= room.no << 32 AND key < (room.no + 1) << 32 ORDER BY key LIMIT 1)) FROM room`).Scan(&minute)
	if err != nil || !minute.Valid {
		return time.Time{}, err
	}
	return timeOf(minute.Int64), nil
}

// measure brings Health up to date with the file.
func (s *Store) measure(ctx context.Context, f *file) error {
	var oldest [len(levels)]time.Time
	for l := range levels {
		var err error
		if oldest[l], err = f.oldest(ctx, l); err != nil {
			return err
		}
	}
	var floor int64
	if err := f.write.QueryRowContext(ctx, `SELECT value FROM mark WHERE name = ?`, floorMark(minutes)).Scan(&floor); err != nil {
		return err
	}
	bytes := int64(0)
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(s.cfg.Path + suffix); err == nil {
			bytes += info.Size()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health.Oldest, s.health.Bytes = oldest, bytes
	s.health.Shortened = floor > minuteOf(s.cfg.Now().Add(-s.keptFor(minutes)))
	return nil
}
