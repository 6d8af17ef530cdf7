/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "nameless.h"

int zt__output_fail(zt__output *o, int status)
{
    if (o->failed == 0) {
        o->failed = status;
        o->failed_errno = errno;
    }
    return status;
}

int zt__output_standing(const zt__output *o)
{
    if (o->failed)
        errno = o->failed_errno;
    return o->failed;
}

static int write_all(zt__output *o, const void *data, size_t n)
{
    const uint8_t *p = data;
    if (o->failed)
        return o->failed;
    while (n > 0) {
        const ssize_t done = write(o->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return zt__output_fail(o, ZT_E_IO);
        p += done;
        n -= (size_t)done;
        o->written += (uint64_t)done;
    }
    return ZT_OK;
}

static int tell(zt_error *error, int status, const char *path, const char *what)
{
    if (error != NULL) {
        error->status = status;
        snprintf(error->text, sizeof(error->text), "%.300s: %s%s%s", path, what, errno ? ": " : "", errno ? strerror(errno) : "");
    }
    return status;
}

static void free_output(zt__output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    ZSTD_freeCCtx(o->zstd);
    free(o->packed.at);
    free(o->index.at);
    free(o->path);
    free(o->partial);
    *o = (zt__output){.fd = -1};
}

static int create(zt__output *o, const char *path, bool aside)
{
    if (aside && strcmp(path, "-") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    const int nameless = aside ? zt_nameless_open(path) : -1;
    if (nameless >= 0)
        return nameless;
    o->partial = malloc(strlen(path) + sizeof(".partial"));
    if (o->partial == NULL)
        return -1;
    strcpy(o->partial, path);
    strcat(o->partial, aside ? ".XXXXXX" : ".partial");
    if (aside)
        return mkostemp(o->partial, O_CLOEXEC);
    /* an unfinished trace of an earlier recording is no obstacle, somebody else's link is */
    unlink(o->partial);
    return open(o->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

zt_file_header zt__output_header(const uint8_t uuid[16], const zt_file_header *like)
{
    zt_file_header header = {.skippable = ZT_SKIPPABLE, .skip_size = sizeof(header) - 8, .magic = ZT_MAGIC, .major = ZT_MAJOR,
                             .minor = ZT_MINOR};
    if (like != NULL && like->minor > ZT_MINOR) {
        header.minor = like->minor;
        header.flags = like->flags;
    }
    memcpy(header.uuid, uuid, sizeof(header.uuid));
    return header;
}

bool zt_may_replace(const char *path)
{
    struct stat st;
    char target[8];
    if (lstat(path, &st) != 0 || S_ISREG(st.st_mode))
        return true;
    if (!S_ISLNK(st.st_mode))
        return false;
    /* as /dev/stdout: the link would be gone, whatever it leads to */
    if (readlink(path, target, sizeof(target)) >= 6 && strncmp(target, "/proc/", 6) == 0)
        return false;
    return stat(path, &st) != 0 || S_ISREG(st.st_mode);
}

int zt__output_open(zt__output *o, const char *path, const zt_file_header *header, int level, bool overwrite, bool aside, zt_error *error)
{
    struct stat st;
    *o = (zt__output){.fd = -1, .overwrite = overwrite, .aside = aside};
    if (!overwrite && lstat(path, &st) == 0 && !(aside && strcmp(path, "-") == 0)) {
        errno = 0;
        return tell(error, ZT_E_EXISTS, path, "exists and is not overwritten");
    }
    if (!zt_may_replace(path)) {
        errno = 0;
        return tell(error, ZT_E_USAGE, path, "is no regular file, which a trace could replace; give another name");
    }
    o->path = strdup(path);
    o->zstd = ZSTD_createCCtx();
    if (o->path == NULL || o->zstd == NULL) {
        free_output(o);
        return tell(error, ZT_E_MEMORY, path, "no memory for a writer");
    }
    ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_compressionLevel, level ? level : 3);
    ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_contentSizeFlag, 1);
    o->fd = create(o, path, aside);
    if (o->fd >= 0 && write_all(o, header, sizeof(*header)) == ZT_OK)
        return ZT_OK;
    const int status = tell(error, ZT_E_IO, o->partial ? o->partial : path, "the trace could not be created");
    zt__output_abandon(o);
    return status;
}

static int remember(zt__output *o, const zt_chunk_header *h)
{
    const zt_index_entry entry = {o->written, h->first, h->begin, h->calls, h->kind};
    bool broken = false;
    ZT_PUSH(broken, o->index, entry);
    return broken ? zt__output_fail(o, ZT_E_MEMORY) : ZT_OK;
}

/* Header and contents go out with one write: a chunk is there or it is not. */
int zt__output_chunk(zt__output *o, zt_chunk_header header, const void *raw, size_t n)
{
    const size_t bound = ZSTD_compressBound(n);
    if (o->failed)
        return o->failed;
    if (o->packed.room < sizeof(header) + bound) {
        uint8_t *const grown = realloc(o->packed.at, sizeof(header) + bound);
        if (grown == NULL)
            return zt__output_fail(o, ZT_E_MEMORY);
        o->packed.at = grown;
        o->packed.room = sizeof(header) + bound;
    }
    const size_t size = ZSTD_compress2(o->zstd, o->packed.at + sizeof(header), bound, raw, n);
    if (ZSTD_isError(size))
        return zt__output_fail(o, ZT_E_MEMORY);
    header.skippable = ZT_SKIPPABLE;
    header.skip_size = sizeof(header) - 8;
    header.magic = ZT_CHUNK_MAGIC;
    header.sequence = o->sequence++;
    header.raw_size = (uint32_t)n;
    header.stored_size = (uint32_t)size;
    header.check = XXH32(&header, offsetof(zt_chunk_header, check), 0);
    memcpy(o->packed.at, &header, sizeof(header));
    remember(o, &header);
    return write_all(o, o->packed.at, sizeof(header) + size);
}

int zt__output_copy(zt__output *o, const zt_chunk_header *header, const void *stored)
{
    if (o->failed)
        return o->failed;
    remember(o, header);
    write_all(o, header, sizeof(*header));
    return write_all(o, stored, header->stored_size);
}

static void write_index(zt__output *o)
{
    const size_t entries = o->index.n * sizeof(zt_index_entry);
    const zt_index_head head = {ZT_SKIPPABLE, (uint32_t)(8 + entries + sizeof(zt_index_tail)), ZT_INDEX_MAGIC, (uint32_t)o->index.n};
    const zt_index_tail tail = {o->written, o->index.n ? XXH32(o->index.at, entries, 0) : 0, ZT_END_MAGIC};
    if (entries > UINT32_MAX - 64)
        return;
    write_all(o, &head, sizeof(head));
    write_all(o, o->index.at, entries);
    write_all(o, &tail, sizeof(tail));
}

/* link refuses to replace what has come into being meanwhile; some file systems know no links */
static int give_name(zt__output *o)
{
    if (o->partial == NULL)
        return zt_nameless_place(o->fd, o->path, o->overwrite) == 0 ? ZT_OK : zt__output_fail(o, errno == EEXIST ? ZT_E_EXISTS : ZT_E_IO);
    if (o->overwrite || (link(o->partial, o->path) != 0 && errno != EEXIST))
        return rename(o->partial, o->path) == 0 ? ZT_OK : zt__output_fail(o, ZT_E_IO);
    struct stat a, b;
    if (stat(o->partial, &a) == 0 && stat(o->path, &b) == 0 && a.st_ino == b.st_ino) {
        unlink(o->partial);
        return ZT_OK;
    }
    errno = EEXIST;
    return zt__output_fail(o, ZT_E_EXISTS);
}

static int finish(zt__output *o, zt_error *error)
{
    const bool to_stdout = o->aside && strcmp(o->path, "-") == 0;
    if (!o->failed && fsync(o->fd) != 0 && errno != EINVAL && errno != EROFS)
        zt__output_fail(o, ZT_E_IO);
    int status = o->failed;
    if (status == ZT_OK && !to_stdout)
        status = give_name(o);
    if (status != ZT_OK) {
        if (o->aside && o->partial != NULL)
            unlink(o->partial);
        errno = o->failed_errno;
        tell(error, status, o->aside ? o->path : o->partial,
             !o->aside                 ? "the trace could not be finished; what was written so far is there"
             : status == ZT_E_EXISTS ? "came into being meanwhile and is not overwritten"
                                     : "can't be written");
    }
    free_output(o);
    return status;
}

int zt__output_close(zt__output *o, zt_error *error)
{
    write_index(o);
    return finish(o, error);
}

int zt__output_finish(zt__output *o, zt_refiled *done, zt_error *error)
{
    write_index(o);
    done->bytes = o->written;
    return finish(o, error);
}

void zt__output_abandon(zt__output *o)
{
    if (o->fd >= 0 && o->partial != NULL)
        unlink(o->partial);
    free_output(o);
}
