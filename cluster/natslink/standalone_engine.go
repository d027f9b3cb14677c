package natslink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/anteroom/anteroom/cluster"
)

const (
	bucket         = "anteroom"
	keysStream     = "KV_" + bucket
	keysSubject    = "$KV." + bucket + "."
	journalStream  = "JOURNAL"
	journalSubject = "journal"

	// perRecord is what a record of the largest size may need in addition to its data.
	perRecord = 1 << 10

	// A batch is read from a stream in one request. Larger ones save nothing, and a replay holds one in memory.
	batchRecords = 8192
	batchBytes   = 2 << 20

	codeStorageExceeded = 10047
	codeStoreFailed     = 10077
)

var (
	// errNoSpaceInStream: the stream is at its limit. The server is fine.
	errNoSpaceInStream = errors.New("stream is at its limit")
	// errMissing: the stream does not hold the record.
	errMissing = errors.New("record is missing")
)

// engine is the embedded server with our connection to it.
type engine struct {
	srv *server.Server
	nc  *nats.Conn
	log *logger
	// noJournal: the server did not find the stream of the journal, because its files are damaged.
	noJournal bool
}

// startEngine starts the server on the directory. It creates bucket and stream if it may; otherwise their absence is
// damage.
func startEngine(cfg Config, create bool) (*engine, error) {
	if err := forgetIndexes(cfg.Dir); err != nil {
		return nil, err
	}
	srv, err := server.NewServer(&server.Options{
		ServerName:             "anteroom",
		DontListen:             true,
		NoSigs:                 true,
		NoLog:                  true, // otherwise it writes to standard error until it has our logger
		NoSystemAccount:        true,
		DisableJetStreamBanner: true,
		JetStream:              true,
		JetStreamMaxMemory:     16 << 20,
		JetStreamMaxStore:      cfg.MaxKeys + cfg.MaxJournal,
		StoreDir:               cfg.Dir,
		// Without this, a write is acknowledged before it is on disk, and a power failure loses admissions that
		// visitors have seen.
		SyncAlways: true,
		MaxPayload: cluster.MaxValue + perRecord,
	})
	if err != nil {
		return nil, fmt.Errorf("natslink: embedded server: %w", err)
	}
	log := &logger{log: cfg.Log}
	srv.SetLoggerV2(log, false, false, false)
	e := &engine{srv: srv, log: log}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) || !srv.JetStreamEnabled() {
		e.stop()
		return nil, fmt.Errorf("natslink: embedded server does not start on %s: %s", cfg.Dir, cmp.Or(log.last(), "it says no reason"))
	}
	if err := e.connect(cfg, create); err != nil {
		e.stop()
		return nil, err
	}
	if e.noJournal && cfg.NewJournal {
		e.stop()
		// Its files may confuse the server again, so the whole directory of the stream goes.
		if err := os.RemoveAll(streamDir(cfg.Dir, journalStream)); err != nil {
			return nil, fmt.Errorf("natslink: the damaged journal cannot be removed: %w", err)
		}
		return startEngine(cfg, true)
	}
	return e, nil
}

func streamDir(dir, stream string) string {
	return filepath.Join(dir, engineName, server.DEFAULT_GLOBAL_ACCOUNT, "streams", stream)
}

// forgetIndexes removes JetStream's summaries of its files. With a summary, it trusts the files without checking them,
// and one flipped bit in a record's number makes it allocate memory until the process is killed. Without one, it reads
// and checks every record.
func forgetIndexes(dir string) error {
	for _, stream := range []string{keysStream, journalStream} {
		err := os.Remove(filepath.Join(streamDir(dir, stream), "msgs", "index.db"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("natslink: summary of stream %s: %w", stream, err)
		}
	}
	return nil
}

func (e *engine) connect(cfg Config, create bool) error {
	var err error
	e.nc, err = nats.Connect("", nats.InProcessServer(e.srv), nats.NoReconnect(), nats.Name("anteroom"))
	if err != nil {
		return fmt.Errorf("natslink: embedded server: %w", err)
	}
	js, err := jetstream.New(e.nc)
	if err != nil {
		return fmt.Errorf("natslink: embedded server: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Streams that are as they should be are left alone: a start then writes nothing that a full disk might refuse.
	type sizes struct{ stream, record int64 }
	there := map[string]sizes{}
	const record = cluster.MaxValue + perRecord
	for _, name := range []string{keysStream, journalStream} {
		stream, err := js.Stream(ctx, name)
		switch {
		case err == nil:
			have := stream.CachedInfo().Config
			there[name] = sizes{have.MaxBytes, int64(have.MaxMsgSize)}
		case errors.Is(err, jetstream.ErrStreamNotFound) && create:
		case errors.Is(err, jetstream.ErrStreamNotFound) && name == journalStream:
			e.noJournal = true
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return &cluster.DamagedError{
				What: "store in " + cfg.Dir,
				Err:  fmt.Errorf("JetStream does not find its stream %s; restore the data directory from a backup", name),
			}
		default:
			return fmt.Errorf("natslink: stream %s: %w", name, err)
		}
	}
	if there[keysStream] != (sizes{cfg.MaxKeys, record}) {
		if _, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket:       bucket,
			Storage:      jetstream.FileStorage,
			History:      1,
			MaxBytes:     cfg.MaxKeys,
			MaxValueSize: record,
		}); err != nil {
			return fmt.Errorf("natslink: bucket of keys: %w", err)
		}
	}
	if there[journalStream] != (sizes{cfg.MaxJournal, record}) && !e.noJournal {
		if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name:      journalStream,
			Subjects:  []string{journalSubject},
			Storage:   jetstream.FileStorage,
			Retention: jetstream.LimitsPolicy,
			// New records are refused when the space is used up. Dropping old ones instead would lose sessions that are
			// still alive.
			Discard:     jetstream.DiscardNew,
			MaxBytes:    cfg.MaxJournal,
			MaxMsgSize:  record,
			AllowDirect: true,
		}); err != nil {
			return fmt.Errorf("natslink: stream of the journal: %w", err)
		}
	}
	return nil
}

// stop ends the connection, then the server, and returns once its files are closed: the directory may be opened again
// at once.
func (e *engine) stop() {
	if e.nc != nil {
		e.nc.Close()
	}
	e.srv.Shutdown()
	e.srv.WaitForShutdown()
}

// publish writes one message to the stream of the subject, whose newest message must have the number last, and returns
// once it is synced.
//
// JetStream does not answer if the file system refuses the write; it only logs. So a complaint in its log ends the
// wait.
func (e *engine) publish(ctx context.Context, subject string, data []byte, last uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.log.onComplaint(func(text string) { cancel(errors.New(text)) })
	defer e.log.onComplaint(nil)
	reply, err := e.nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		// The server passes only the text of the error on.
		if noSpace(err.Error()) {
			return fmt.Errorf("%w: the disk of the data directory is full (%w); delete files there or enlarge it", cluster.ErrFull, err)
		}
		return fmt.Errorf("natslink: store does not confirm a write: %w", err)
	}
	seq, err := acknowledged(reply.Data)
	if e, refused := errors.AsType[*apiError](err); refused {
		if e.full() {
			return errNoSpaceInStream
		}
		return fmt.Errorf("natslink: store refuses to write: %w", e)
	}
	if err != nil {
		return err
	}
	// The number is part of what is sealed. Any other number means that the stream has records that we did not write.
	if seq != last+1 {
		return fmt.Errorf("natslink: store gave number %d where %d was due", seq, last+1)
	}
	return nil
}

// state returns what JetStream believes a stream holds.
func (e *engine) state(ctx context.Context, stream string) (jetstream.StreamState, error) {
	js, err := jetstream.New(e.nc)
	if err != nil {
		return jetstream.StreamState{}, err
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return jetstream.StreamState{}, fmt.Errorf("natslink: stream %s: %w", stream, err)
	}
	return s.CachedInfo().State, nil
}

// purge drops the stream's records before the number.
func (e *engine) purge(ctx context.Context, stream string, before uint64, only ...jetstream.StreamPurgeOpt) error {
	js, err := jetstream.New(e.nc)
	if err != nil {
		return err
	}
	s, err := js.Stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, append(only, jetstream.WithPurgeSequence(before))...)
	}
	if err != nil {
		return fmt.Errorf("natslink: purge of stream %s: %w", stream, err)
	}
	return nil
}

// reader reads messages of a stream by their numbers, in batches.
type reader struct {
	e       *engine
	stream  string
	headers bool // including the subject, which costs time
	sub     *nats.Subscription
	inbox   string
}

func (e *engine) reader(stream string, headers bool) (*reader, error) {
	r := &reader{e: e, stream: stream, headers: headers, inbox: e.nc.NewInbox()}
	var err error
	if r.sub, err = e.nc.SubscribeSync(r.inbox); err != nil {
		return nil, err
	}
	// The request bounds a batch, so the subscription needs no limit of its own.
	return r, r.sub.SetPendingLimits(-1, -1)
}

func (r *reader) close() { r.sub.Unsubscribe() }

const statusHeader = "Status"

// read calls fn with up to limit messages from the given number on, or returns errMissing if there are none. fn may use
// a message's data only during the call.
func (r *reader) read(ctx context.Context, from uint64, limit int, fn func(m *nats.Msg) error) error {
	req := fmt.Appendf(nil, `{"seq":%d,"batch":%d,"max_bytes":%d,"no_hdr":%t}`, from, limit, batchBytes, !r.headers)
	if err := r.e.nc.PublishRequest("$JS.API.DIRECT.GET."+r.stream, r.inbox, req); err != nil {
		return err
	}
	var failed error
	for {
		m, err := r.sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		switch status := m.Header.Get(statusHeader); {
		case status == "" && failed == nil:
			failed = fn(m)
		case status == "":
			// The rest of the batch is still coming; it must not mix with the answer to the next request.
		case status == "204":
			return failed
		case status == "404":
			return errMissing
		default:
			return fmt.Errorf("natslink: stream %s: %s %s", r.stream, status, m.Header.Get("Description"))
		}
	}
}

// get returns the data of one message, or errMissing.
func (e *engine) get(ctx context.Context, stream string, number uint64) ([]byte, error) {
	m, err := e.nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream, fmt.Appendf(nil, `{"seq":%d}`, number))
	if err != nil {
		return nil, fmt.Errorf("natslink: stream %s: %w", stream, err)
	}
	switch status := m.Header.Get(statusHeader); status {
	case "":
		return m.Data, nil
	case "404":
		return nil, errMissing
	default:
		return nil, fmt.Errorf("natslink: stream %s: %s %s", stream, status, m.Header.Get("Description"))
	}
}
