/* SPDX-License-Identifier: MIT */
/*
 * Finds the chunks of a trace by walking their headers, past damage where there is some. The index at the end is for others: walking
 * costs two reads per 8,192 calls and works on every file.
 */
#include "scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

int zt__complain(zt_error *error, int status, const char *path, const char *text)
{
    if (error != NULL) {
        error->status = status;
        snprintf(error->text, sizeof(error->text), "%.200s: %s", path, text);
    }
    return status;
}

bool zt__file_read(const zt__file *f, uint64_t offset, void *out, size_t n)
{
    uint8_t *p = out;
    while (n > 0) {
        const ssize_t got = pread(f->fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- walking */

static bool header_at(const zt__file *f, uint64_t offset, zt_chunk_header *h)
{
    return offset + sizeof(*h) <= f->size && zt__file_read(f, offset, h, sizeof(*h)) && h->skippable == ZT_SKIPPABLE &&
           h->skip_size == sizeof(*h) - 8 && h->magic == ZT_CHUNK_MAGIC &&
           h->check == XXH32(h, offsetof(zt_chunk_header, check), 0) && h->raw_size <= ZT_MAX_RAW &&
           h->calls <= ZT_MAX_CALLS && h->stored_size <= ZT_MAX_RAW * 2u;
}

static bool is_index(const zt__file *f, uint64_t offset, zt_index_head *head)
{
    return offset + sizeof(*head) <= f->size && zt__file_read(f, offset, head, sizeof(*head)) && head->skippable == ZT_SKIPPABLE &&
           head->magic == ZT_INDEX_MAGIC && offset + 8 + head->skip_size <= f->size &&
           head->skip_size == 8 + (uint64_t)head->entries * sizeof(zt_index_entry) + sizeof(zt_index_tail);
}

/* The next offset from `from` on at which a good chunk header or the index stands. @return the file's size if there is none. */
static uint64_t resync(const zt__file *f, uint64_t from)
{
    static const uint32_t skippable = ZT_SKIPPABLE;
    uint8_t buffer[65536];
    zt_chunk_header h;
    zt_index_head head;
    while (from + sizeof(head) <= f->size) {
        const size_t n = f->size - from < sizeof(buffer) ? (size_t)(f->size - from) : sizeof(buffer);
        if (!zt__file_read(f, from, buffer, n))
            return f->size;
        for (size_t i = 0; i + 4 <= n; i++)
            if (memcmp(buffer + i, &skippable, 4) == 0 && (header_at(f, from + i, &h) || is_index(f, from + i, &head)))
                return from + i;
        from += n - 3;
        if (n < sizeof(buffer))
            break;
    }
    return f->size;
}

static bool add_place(zt__file *f, uint64_t offset, const zt_chunk_header *h)
{
    if (f->n_places == f->places_room) {
        const size_t more = f->places_room ? f->places_room * 2 : 64;
        zt__place *const grown = realloc(f->places, more * sizeof(*grown));
        if (grown == NULL)
            return false;
        f->places = grown;
        f->places_room = more;
    }
    f->places[f->n_places++] = (zt__place){.offset = offset, .first = h->first, .begin = h->begin, .end = h->end,
                                           .sequence = h->sequence, .calls = h->calls, .late = h->late, .span = h->span,
                                           .raw_size = h->raw_size, .stored_size = h->stored_size, .kind = h->kind,
                                           .flags = h->flags};
    return true;
}

static bool add_hole(zt__file *f, uint64_t offset, uint64_t end, bool cut)
{
    if (f->n_holes == f->holes_room) {
        const size_t more = f->holes_room ? f->holes_room * 2 : 8;
        zt__hole *const grown = realloc(f->holes, more * sizeof(*grown));
        if (grown == NULL)
            return false;
        f->holes = grown;
        f->holes_room = more;
    }
    f->holes[f->n_holes++] = (zt__hole){offset, end, f->n_places, cut};
    return true;
}

int zt__file_walk(zt__file *f)
{
    uint64_t offset = sizeof(zt_file_header);
    while (offset < f->size) {
        zt_chunk_header h;
        zt_index_head head;
        if (header_at(f, offset, &h)) {
            const uint64_t end = offset + sizeof(h) + h.stored_size;
            if (end > f->size)
                return add_hole(f, offset, f->size, true) ? ZT_OK : ZT_E_MEMORY;
            if (!add_place(f, offset, &h))
                return ZT_E_MEMORY;
            offset = end;
        } else if (is_index(f, offset, &head)) {
            f->index_at = offset;
            offset += 8 + head.skip_size;
        } else {
            const uint64_t next = resync(f, offset + 1);
            if (!add_hole(f, offset, next, false))
                return ZT_E_MEMORY;
            offset = next;
        }
    }
    return ZT_OK;
}

/* ------------------------------------------------------------------------------------------------------------ opening */

/* Standard input cannot be walked twice: into a file without a name, and not into memory, as a trace may be large. */
static int spool(zt_error *error)
{
    char buffer[65536], name[4096];
    const char *const folder = getenv("TMPDIR");
    snprintf(name, sizeof(name), "%.4000s/zetrace-stdin.XXXXXX", folder && folder[0] ? folder : "/tmp");
    const int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0) {
        zt__complain(error, ZT_E_IO, name, "no temporary file for standard input can be made; set TMPDIR to a folder that can be written");
        return -1;
    }
    unlink(name);
    for (ssize_t n; (n = read(STDIN_FILENO, buffer, sizeof(buffer))) != 0;) {
        if ((n < 0 && errno != EINTR) || (n > 0 && write(fd, buffer, (size_t)n) != n)) {
            zt__complain(error, ZT_E_IO, "-", strerror(errno));
            close(fd);
            return -1;
        }
    }
    return fd;
}

static bool sound(const zt_file_header *h)
{
    return h->skippable == ZT_SKIPPABLE && h->skip_size == sizeof(*h) - 8 && memcmp(h->magic, ZT_MAGIC, sizeof(h->magic)) == 0 &&
           h->major == ZT_MAJOR;
}

int zt__file_open(zt__file *f, const char *path, zt_error *error)
{
    struct stat st;
    char text[256];
    zt_chunk_header first;
    *f = (zt__file){.fd = -1};
    f->path = strdup(path);
    if (f->path == NULL)
        return zt__complain(error, ZT_E_MEMORY, path, "no memory to read it");
    f->fd = strcmp(path, "-") == 0 ? spool(error) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0 && strcmp(path, "-") == 0)
        return error != NULL ? error->status : ZT_E_IO;
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return zt__complain(error, ZT_E_IO, path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return zt__complain(error, ZT_E_USAGE, path, "is a folder; a trace file was wanted");
    if (!S_ISREG(st.st_mode))
        return zt__complain(error, ZT_E_USAGE, path, "is no regular file; give '-' to read a trace from standard input");
    f->size = (uint64_t)st.st_size;
    if (f->size == 0)
        return zt__complain(error, ZT_E_FOREIGN, path, "is empty; a zetrace trace was wanted (a recording that was never begun?)");
    const bool header = f->size >= sizeof(f->header) && zt__file_read(f, 0, &f->header, sizeof(f->header));
    if (header && sound(&f->header))
        return ZT_OK;
    f->strange = header && header_at(f, sizeof(f->header), &first);
    if (f->strange)
        return ZT_OK;
    if (!header || memcmp(f->header.magic, ZT_MAGIC, sizeof(f->header.magic)) != 0)
        return zt__complain(error, ZT_E_FOREIGN, path,
                            "is not a zetrace trace (it does not begin with ZETRACE); record one with 'zetrace record'");
    if (f->header.major == ZT_MAJOR)
        return ZT_OK;
    snprintf(text, sizeof(text), "is a trace of format %u.%u, but this zetrace reads format %u; use a %s zetrace", f->header.major,
             f->header.minor, (unsigned)ZT_MAJOR, f->header.major > ZT_MAJOR ? "newer" : "different");
    return zt__complain(error, f->header.major > ZT_MAJOR ? ZT_E_NEWER : ZT_E_FOREIGN, path, text);
}

void zt__file_close(zt__file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->places);
    free(f->holes);
    free(f->path);
}

/* ---------------------------------------------------------------------------------------------------------- decoding */

uint8_t *zt__contents(const zt__file *f, zt__place *p, ZSTD_DCtx *zstd)
{
    if (p->fault != ZT__GOOD && p->fault != ZT__NO_TABLE)
        return NULL;
    uint8_t *const stored = malloc(p->stored_size ? p->stored_size : 1);
    uint8_t *raw = malloc(p->raw_size ? p->raw_size : 1);
    bool good = false;
    if (stored != NULL && raw != NULL && zt__file_read(f, p->offset + sizeof(zt_chunk_header), stored, p->stored_size) &&
        ZSTD_getFrameContentSize(stored, p->stored_size) == p->raw_size &&
        ZSTD_findFrameCompressedSize(stored, p->stored_size) == p->stored_size) {
        const size_t n = ZSTD_decompressDCtx(zstd, raw, p->raw_size, stored, p->stored_size);
        /* one bit of a frame's header has no meaning, and no checksum */
        good = !ZSTD_isError(n) && n == p->raw_size && !(stored[4] & 0x10);
    }
    free(stored);
    if (!good) {
        p->fault = ZT__CHECKSUM;
        free(raw);
        raw = NULL;
    }
    return raw;
}

size_t zt__packet_at(const uint8_t *contents, size_t n)
{
    size_t at = 0, length = 0;
    unsigned shift = 0;
    while (at < n && shift < 35) {
        length |= (size_t)(contents[at] & 0x7f) << shift;
        shift += 7;
        if (!(contents[at++] & 0x80))
            return length == n - at ? at : 0;
    }
    return 0;
}

typedef struct budget {
    size_t left;
} budget;

static void *allocate(void *ctx, size_t size)
{
    budget *const b = ctx;
    if (size + 16 > b->left)
        return NULL;
    b->left -= size + 16;
    return malloc(size);
}

static void release(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

Zetrace__Packet *zt__packet_unpack(const uint8_t *packet, size_t n)
{
    budget left = {(64u << 20) + 8 * n};
    ProtobufCAllocator allocator = {allocate, release, &left};
    return zetrace__packet__unpack(&allocator, n, packet);
}

Zetrace__Packet *zt__packet(const zt__file *f, zt__place *p, ZSTD_DCtx *zstd)
{
    /* kinds of chunks are the numbers of the packets' fields */
    _Static_assert((int)ZT_CHUNK_SESSION == (int)ZETRACE__PACKET__KIND_SESSION && (int)ZT_CHUNK_FRAMES == (int)ZETRACE__PACKET__KIND_FRAMES,
                   "chunk kinds");
    uint8_t *const raw = zt__contents(f, p, zstd);
    const size_t at = raw ? zt__packet_at(raw, p->raw_size) : 0;
    Zetrace__Packet *packet = at ? zt__packet_unpack(raw + at, p->raw_size - at) : NULL;
    free(raw);
    if (packet != NULL && packet->kind_case != (int)p->kind) {
        zetrace__packet__free_unpacked(packet, NULL);
        packet = NULL;
        p->fault = ZT__WRONG_KIND;
    } else if (packet == NULL && p->fault == ZT__GOOD) {
        p->fault = ZT__NO_PACKET;
    }
    return packet;
}

const char *zt__fault_text(int fault)
{
    static const char *const texts[] = {[ZT__GOOD] = "it is good", [ZT__CHECKSUM] = "its checksum differs",
                                        [ZT__NO_PACKET] = "what it holds is no packet", [ZT__WRONG_KIND] = "it holds another kind of packet",
                                        [ZT__MISFIT] = "its parts do not fit each other",
                                        [ZT__NO_TABLE] = "the table that names its functions is missing"};
    return texts[fault];
}
