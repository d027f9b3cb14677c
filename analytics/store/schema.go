package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// schemaVersion is that of the file; one of a later release is left alone.
const schemaVersion = 1

// applicationID marks the file as ours: "AntR".
const applicationID = 0x416e7452

// level is a resolution as it is kept.
type level struct {
	every analytics.Resolution
	word  string // in the names of its tables
}

// minutes is the finest level; each of the others is rolled up from the one before it.
const minutes = 0

// levels from the finest to the coarsest.
var levels = [...]level{{analytics.EveryMinute, "minute"}, {analytics.EveryQuarter, "quarter"}, {analytics.EveryHour, "hour"}, {analytics.EveryDay, "day"}}

func (l level) length() time.Duration { return time.Duration(l.every) }

// levelOf returns the index of a resolution's level.
func levelOf(every analytics.Resolution) (int, bool) {
	for i, l := range levels {
		if l.every == every {
			return i, true
		}
	}
	return 0, false
}

// Rows have one number for room and time, so that those of a room stand together: the room's
// number times 2^32, and the minute since 1970.
func keyOf(room, minute int64) int64 { return room<<32 | minute }

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

func timeOf(minute int64) time.Time { return time.Unix(60*minute, 0).UTC() }

// schema makes an empty file. Histograms and details, which few queries ask for, are apart from
// what every query reads. A part is what one process saw of a minute.
func schema() (statements []string) {
	statements = []string{
		`CREATE TABLE room (no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)`,
		`CREATE TABLE mark (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID`,
		`CREATE TABLE part (minute INTEGER NOT NULL, room INTEGER NOT NULL, process INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (minute, room, process))`,
		`CREATE INDEX part_seq ON part (minute, seq)`,
	}
	for _, l := range levels {
		statements = append(statements,
			fmt.Sprintf(`CREATE TABLE row_%s (key INTEGER PRIMARY KEY, minutes INTEGER NOT NULL, body BLOB NOT NULL)`, l.word),
			fmt.Sprintf(`CREATE TABLE more_%s (key INTEGER PRIMARY KEY, details BLOB, histograms BLOB)`, l.word))
	}
	return append(statements, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID), fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion))
}

// Names of marks. Up to rolledMark of a level, everything is rolled up into it; before floorMark of a level,
// its rows were dropped. Both are minutes since 1970.
func rolledMark(l int) string { return "rolled_" + levels[l].word }
func floorMark(l int) string  { return "floor_" + levels[l].word }

// idMark is the number by which other stores know this file.
const idMark = "store"

// file is an open database.
type file struct {
	write *sql.DB // one connection
	read  *sql.DB
}

const (
	pageSize = 4096 // SQLite's default
	// readers is how many queries read at once.
	readers = 4
	// walLimit is the size in bytes to which the log beside the file is cut back.
	walLimit = 16 << 20
)

// openFile opens the database, and makes it when there is none. maxSize bounds it, in bytes.
func openFile(ctx context.Context, path string, maxSize int64) (f *file, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// SQLite would make it readable by everybody.
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := made.Close(); err != nil {
		return nil, err
	}
	f = &file{}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	// With NORMAL, the end of the process loses nothing, and the loss of power the last seconds.
	if f.write, err = connect(path, 1, url.Values{"_auto_vacuum": {"INCREMENTAL"}, "_journal_mode": {"WAL"}, "_synchronous": {"NORMAL"}},
		fmt.Sprintf("journal_size_limit(%d)", walLimit), fmt.Sprintf("max_page_count(%d)", maxSize/pageSize)); err != nil {
		return f, err
	}
	if err := prepare(ctx, f.write); err != nil {
		return f, err
	}
	f.read, err = connect(path, readers, url.Values{}, "query_only(1)", "cache_size(-16000)")
	return f, err
}

// connect opens connections.
func connect(path string, connections int, options url.Values, pragmas ...string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	options["_pragma"], options["_busy_timeout"] = pragmas, []string{"5000"}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// prepare makes the tables, or checks that they are ours.
func prepare(ctx context.Context, db *sql.DB) error {
	var id, version, tables int64
	for pragma, to := range map[string]*int64{`PRAGMA application_id`: &id, `PRAGMA user_version`: &version, `SELECT count(*) FROM sqlite_schema`: &tables} {
		if err := db.QueryRowContext(ctx, pragma).Scan(to); err != nil {
			return err
		}
	}
	switch {
	case tables > 0 && (id != applicationID || version < 1):
		return anteroom.Errorf(anteroom.Invalid, "it is a database of something else: give this process another data directory, or move the file away")
	case version > schemaVersion:
		return anteroom.Errorf(anteroom.Invalid, "it is of a later release (format %d, this one knows %d): run that release, or move the file away", version, schemaVersion)
	case tables > 0:
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, statement := range schema() {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (f *file) close() error {
	var errs []error
	for _, db := range []*sql.DB{f.read, f.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Codes of SQLite's that say that the bytes are not a database's.
const (
	codeCorrupt = 11
	codeNotADB  = 26
	codeFull    = 13
)

// errInconsistent is what a check of the whole file found.
var errInconsistent = errors.New("analytics: the file is damaged")

func damaged(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return errors.Is(err, errInconsistent) || ok && (e.Code()&0xff == codeCorrupt || e.Code()&0xff == codeNotADB)
}

func full(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == codeFull
}

// explained is an error in the operator's words.
func explained(err error) error {
	if full(err) {
		return fmt.Errorf("the disk or its quota is full, or analytics.max_size_mib is too small: %w", err)
	}
	return err
}

// moveAside gives a damaged file another name, so that a new one can take its place.
func moveAside(path string, now time.Time) (aside string, err error) {
	aside = fmt.Sprintf("%s.damaged-%s", path, now.UTC().Format("20060102T150405"))
	for i := 2; ; i++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = fmt.Sprintf("%s.damaged-%s-%d", path, now.UTC().Format("20060102T150405"), i)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return aside, os.Rename(path, aside)
}
