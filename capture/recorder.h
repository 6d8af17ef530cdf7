/* SPDX-License-Identifier: MIT */
/* The recorder from the inside: rings are read by recorder_ring.c, merged per process by recorder_process.c, run by recorder.c. */
#ifndef ZC_RECORDER_H
#define ZC_RECORDER_H

#include "capture.h"
#include "ring.h"

typedef struct zc_big { /* a piece that comes in ZC_R_DATA records */
    uint32_t id;
    uint64_t total, have;
    uint8_t *bytes; /* NULL: there was no memory for it */
} zc_big;

typedef struct zc_open_call { /* emitted before it returned */
    uint64_t seq, number;
} zc_open_call;

/* Reader's side of a ring. */
typedef struct zc_reader {
    zc_ring *ring;
    const uint8_t *data; /* mapped twice */
    uint64_t size, tail;
    uint64_t head;       /* as last seen, without bit 0 */
    uint32_t thread;     /* number in the trace, 0 until its first call */
    int32_t tid;
    uint64_t bound;      /* no later call of this ring can have an earlier ENTER (ticks) */
    uint64_t open_number; /* the OPEN slot at tail was emitted under this number; 0: not */
    zc_open_call *open;
    size_t n_open, open_room;
    zc_big *big;
    size_t n_big, big_room;
    bool broken;
    uint64_t dropped_seen;
} zc_reader;

/* @return NULL with a reason in `why` if the memfd is not a ring of ours. Takes over `fd`. */
zc_reader *zc_reader_new(int fd, uint64_t size, int32_t pid, int32_t tid, const char **why);
void zc_reader_free(zc_reader *reader);

enum zc_front { ZC_EMPTY, ZC_CALL, ZC_CALL_OPEN, ZC_BROKEN };
struct zc_process;
/*
 * Takes everything in front of the next call (data, late LEAVEs, losses) and looks at the call. An OPEN call counts as ZC_CALL_OPEN.
 * With `ended` the program is gone: nothing will change any more.
 */
enum zc_front zc_reader_front(zc_reader *reader, struct zc_process *process, uint64_t *t_enter);
/* Emits the call in front and, unless it is still open, takes it from the ring. */
void zc_reader_take(zc_reader *reader, struct zc_process *process);

/* What a list of zc_piece holds, as the writer wants it. Arrays are reused from call to call. */
typedef struct zc_pieces {
    zt_piece *pieces;
    zt_content *contents;
    uint64_t *frames;
    size_t n_pieces, n_contents, n_frames, pieces_room, contents_room, frames_room;
} zc_pieces;

/* A file that is mapped as code in the recorded process, or was. */
typedef struct zc_module {
    char *path;
    uint64_t base, end;
    int fd;        /* opened at its first frame, so that it is the file that ran; -1: not */
    bool code, loader;
} zc_module;

typedef struct zc_place { /* a frame address, 0: none */
    uint64_t address;
    uint32_t module; /* index plus one, 0: none is known */
} zc_place;

typedef struct zc_frames {
    zc_module *modules;
    size_t n_modules, modules_room;
    zc_place *places; /* open addressing, a power of two */
    size_t n_places, places_room;
    uint64_t fruitless_ns; /* when the maps were last read for nothing */
} zc_frames;

typedef struct zc_process {
    int32_t pid, parent_pid;      /* as the process itself sees them */
    int32_t system_pid;           /* as this process sees it: pid namespaces make a difference */
    int pidfd;
    bool ended, counter, forked;
    bool exited, signalled;
    int status;
    uint64_t ticks0, mono0;       /* read together by the process */
    uint64_t real0;
    double ns_per_tick;           /* 0 until the first call is emitted */
    zc_reader **readers;
    size_t n_readers, readers_room;
    uint32_t next_thread;
    uint64_t next_number;
    zt_session session;
    zt_writer *writer;
    bool failed;                  /* the writer could not be opened or broke: calls are counted only */
    zt_error error;
    char file[4096];
    uint64_t calls, dropped, dropped_bytes, never_returned, added_ns, late_open;
    zc_pieces in, out;
    zc_frames frames;
    uint64_t traced;              /* calls with a backtrace */
    uint64_t last_flush_ns;
    uint64_t horizon;             /* every thread that entered a call before that time has a reader; in ticks */
} zc_process;

typedef struct zc_connection {
    int fd;
    int32_t pid; /* of who connected, as this process sees it */
} zc_connection;

typedef struct zc_recorder {
    const zc_record_options *options;
    zc_record_summary *summary;
    char folder[4096];            /* private: socket, shims */
    int listener;
    zc_connection *connections;
    size_t n_connections, connections_room;
    zc_process **processes;
    size_t n_processes, processes_room;
    char **names;                 /* taken by this recording */
    size_t n_names;
    uint64_t calibrate_ticks, calibrate_ns;
    char hostname[256];
} zc_recorder;

uint64_t zc_ticks_now(void);
uint64_t zc_mono_now(void);
/* Room for one more element of `size` bytes. @return false when memory is out. */
bool zc_grow(void *array, size_t n, size_t *room, size_t size);

zc_process *zc_process_new(zc_recorder *recorder, const zc_hello *hello, int32_t system_pid);
/* To be called before new processes and rings are met: the next pass emits calls entered up to now. */
void zc_process_look(zc_process *process);
/* One pass: emits what can be emitted. @return whether anything was taken. */
bool zc_process_pass(zc_recorder *recorder, zc_process *process);
/* After the program's death and the last pass: writes the ending, publishes the trace, frees. Adds to the summary. */
void zc_process_finish(zc_recorder *recorder, zc_process *process);
uint64_t zc_process_ns(const zc_process *process, uint64_t ticks);
bool zc_process_open_writer(zc_recorder *recorder, zc_process *process);
void zc_process_emit(zc_process *process, const zt_call *call);

/* Reads what files the process has mapped. @return false if it cannot be read any more. */
bool zc_modules_read(zc_process *process);
/* Notes where a call's frames lie while that can be found out. Leaves out the loader's, which come first. @return how many are left. */
size_t zc_frames_take(zc_process *process, uint64_t *frames, size_t n);
/* Names all frames and adds the names to the trace. Looks after the rings of other processes meanwhile. */
void zc_frames_write(zc_recorder *recorder, zc_process *process);
void zc_frames_free(zc_frames *frames);

/* Names of places in one module. */
typedef struct zc_symbols zc_symbols;
/* Takes the module's descriptor. @return NULL if the file says nothing. */
zc_symbols *zc_symbols_open(zc_module *module);
/* "main evict.c:31", "main+0x1a" or false: not known. `address` is a return address. */
bool zc_symbols_name(zc_symbols *symbols, uint64_t address, char *out, size_t size);
void zc_symbols_close(zc_symbols *symbols);

/* Session facts from /proc. */
void zc_session_read(zc_recorder *recorder, zc_process *process);
const char *zc_rank(void);
char *zc_slurp(const char *path, size_t *length);

#endif
