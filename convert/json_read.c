/* SPDX-License-Identifier: MIT */
/*
 * JSON back into packets, straight into the bytes of the wire while it is being parsed: no tree is made, and what is kept is one packet
 * and one token. The JSON comes from a stranger. The descriptors of the schema say what may stand where; all else ends it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <yajl/yajl_parse.h>

#include "base64.h"
#include "convert.h"
#include "json.h"
#include "packet_header.h"
#include "wire.h"

enum {
    DEPTH = 8,                                /* messages in messages: the schema has four */
    TOKEN_BYTES = ZT_MAX_RAW / 3 * 4 + 65536, /* the longest text: a packet in base64 */
    BLOCK = 65536
};

enum place { OUTSIDE, LINE, HEADER, MESSAGE, ARRAY, BYTES_OF_TEXT, UNKNOWN };

typedef struct level {
    enum place place;
    const ProtobufCMessageDescriptor *type; /* MESSAGE */
    const ProtobufCFieldDescriptor *field;  /* MESSAGE: of the last key; ARRAY, BYTES_OF_TEXT: theirs */
    size_t tag, start;                      /* where its tag and its contents begin */
    bool any;                               /* ARRAY, BYTES_OF_TEXT: something was in it */
} level;

enum key { K_NONE, K_FIRST, K_MINOR, K_FLAGS, K_UUID, K_PACKET, K_RAW, K_HEADER, K_PACKETS, K_KIND, K_FIRST_CALL, K_CALLS, K_LATE, K_BEGIN, K_END,
           K_SPAN, K_COUNT };
static const struct {
    const char *name;
    enum place place;
    uint64_t most;
} keys[K_COUNT] = {[K_FIRST] = {ZV_FIRST, LINE, UINT64_MAX}, [K_MINOR] = {"minor", LINE, UINT16_MAX}, [K_FLAGS] = {"flags", LINE, UINT32_MAX},
                   [K_UUID] = {"uuid", LINE, 0}, [K_PACKET] = {"packet", LINE, 0}, [K_RAW] = {"raw", LINE, 0},
                   [K_HEADER] = {"header", LINE, 0}, [K_PACKETS] = {"packets", LINE, UINT64_MAX}, [K_KIND] = {"kind", HEADER, UINT8_MAX},
                   [K_FIRST_CALL] = {"first", HEADER, UINT64_MAX}, [K_CALLS] = {"calls", HEADER, ZT_MAX_CALLS},
                   [K_LATE] = {"late", HEADER, ZT_MAX_CALLS}, [K_BEGIN] = {"begin", HEADER, UINT64_MAX},
                   [K_END] = {"end", HEADER, UINT64_MAX}, [K_SPAN] = {"span", HEADER, UINT32_MAX}};

typedef struct reading {
    const char *name;
    uint64_t line, bytes, size, since_token;
    level levels[DEPTH + 4];
    unsigned depth;
    zv_wire wire;
    enum key key;
    uint64_t numbers[K_COUNT]; /* of the object at hand */
    uint32_t seen;             /* keys of it */
    uint8_t uuid[16];
    bool begun, ended;
    uint64_t packets;
    const char *path;
    const zv_import_options *options;
    zt_writer *writer;
    zt_error *error;
} reading;

static int refuse(reading *r, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The first one counts. @return 0, with which a callback ends the parsing. */
static int refuse(reading *r, int status, const char *format, ...)
{
    char text[400];
    va_list args;
    if (r->error->status != ZT_OK)
        return 0;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    r->error->status = status;
    snprintf(r->error->text, sizeof(r->error->text), "%.80s: line %llu: %s", r->name, (unsigned long long)r->line, text);
    return 0;
}

static int foreign(reading *r)
{
    if (r->error->status != ZT_OK)
        return 0;
    r->error->status = ZT_E_FOREIGN;
    snprintf(r->error->text, sizeof(r->error->text),
             "%.80s: is no trace as JSON (it does not begin with {\"" ZV_FIRST "\":); make one with 'zetrace export --format=json'", r->name);
    return 0;
}

/* A stranger's word, fit for a terminal. */
static const char *shown(const unsigned char *text, size_t n, char out[44])
{
    const size_t most = n < 40 ? n : 40;
    for (size_t i = 0; i < most; i++)
        out[i] = text[i] > 0x20 && text[i] < 0x7f ? (char)text[i] : '?';
    strcpy(out + most, n > most ? "..." : "");
    return out;
}

static level *top(reading *r)
{
    return &r->levels[r->depth];
}

static bool push(reading *r, level l)
{
    if (r->depth + 1 == sizeof(r->levels) / sizeof(r->levels[0]))
        return refuse(r, ZT_E_DAMAGED, "objects lie deeper in each other than in any packet");
    r->levels[++r->depth] = l;
    return true;
}

static int wire_state(reading *r)
{
    if (r->wire.too_big)
        return refuse(r, ZT_E_LIMIT, "a packet of more than %u MiB; that is more than a trace may have", ZT_MAX_RAW >> 20);
    return r->wire.out_of_memory ? refuse(r, ZT_E_MEMORY, "no memory for the packet") : 1;
}

static int base64(reading *r, const unsigned char *text, size_t n)
{
    size_t size;
    uint8_t *const to = zv_wire_room(&r->wire, n / 4 * 3);
    if (to == NULL)
        return wire_state(r);
    if (!zv_base64_get(text, n, to, &size))
        return refuse(r, ZT_E_DAMAGED, "bytes as base64 were wanted, but there is \"%s\"", shown(text, n, (char[44]){0}));
    r->wire.n += size;
    return 1;
}

/* ---------------------------------------------------------------------------------------------------- whole objects */

static bool has(const reading *r, enum key key)
{
    return r->seen >> key & 1;
}

static int first_line(reading *r)
{
    if (!has(r, K_FIRST))
        return foreign(r);
    if (r->numbers[K_FIRST] != ZV_JSON_VERSION)
        return refuse(r, ZT_E_NEWER, "version %llu of JSON traces, but this zetrace reads version %u; use a newer zetrace",
                      (unsigned long long)r->numbers[K_FIRST], ZV_JSON_VERSION);
    if (!has(r, K_UUID))
        return refuse(r, ZT_E_DAMAGED, "the trace's uuid is missing");
    zt_file_header header = {.skippable = ZT_SKIPPABLE, .skip_size = sizeof(header) - 8, .magic = ZT_MAGIC, .major = ZT_MAJOR,
                             .minor = (uint16_t)r->numbers[K_MINOR], .flags = (uint32_t)r->numbers[K_FLAGS]};
    memcpy(header.uuid, r->uuid, sizeof(header.uuid));
    const zt_writer_options options = {.level = r->options->level, .overwrite = r->options->overwrite, .aside = true};
    r->begun = zt_writer_open_packets(&r->writer, r->path, &header, &options, r->error) == ZT_OK;
    return r->begun;
}

static int packet_line(reading *r)
{
    zt_packet packet = {.data = r->wire.at, .size = r->wire.n};
    if (has(r, K_PACKET) == has(r, K_RAW))
        return refuse(r, ZT_E_DAMAGED, "one of \"packet\" and \"raw\" was wanted");
    Zetrace__Packet *const message = zt__packet_unpack(packet.data ? packet.data : (const uint8_t *)"", packet.size);
    if (message != NULL)
        zv_header_of(&packet, message);
    const bool unpacked = message != NULL, known = unpacked && message->kind_case != ZETRACE__PACKET__KIND__NOT_SET;
    if (unpacked)
        zetrace__packet__free_unpacked(message, NULL);
    if (has(r, K_HEADER)) {
        const uint64_t *const v = r->numbers;
        packet = (zt_packet){.data = packet.data, .size = packet.size, .kind = (uint8_t)v[K_KIND], .flags = (uint8_t)v[K_FLAGS],
                             .calls = (uint32_t)v[K_CALLS], .late = (uint32_t)v[K_LATE], .span = (uint32_t)v[K_SPAN],
                             .first = v[K_FIRST_CALL], .begin = v[K_BEGIN], .end = v[K_END]};
    } else if (!known) {
        return refuse(r, ZT_E_DAMAGED, unpacked ? "a packet without a kind wants a \"header\"" : "bytes that are no packet want a \"header\"");
    }
    if (packet.calls > ZT_MAX_CALLS || packet.late > ZT_MAX_CALLS)
        return refuse(r, ZT_E_LIMIT, "a chunk of more than %u calls", ZT_MAX_CALLS);
    r->packets++;
    const int status = zt_writer_packet(r->writer, &packet);
    return status == ZT_OK ? 1 : refuse(r, status, "the trace could not be written: %s", strerror(errno));
}

static int end_of_line(reading *r)
{
    if (!r->begun)
        return first_line(r);
    if (has(r, K_PACKET) || has(r, K_RAW))
        return packet_line(r);
    if (!has(r, K_PACKETS))
        return refuse(r, ZT_E_DAMAGED, "an object with \"packet\", \"raw\" or \"packets\" was wanted");
    if (r->numbers[K_PACKETS] != r->packets)
        return refuse(r, ZT_E_DAMAGED, "%llu packets were announced, but %llu were there: lines are missing",
                      (unsigned long long)r->numbers[K_PACKETS], (unsigned long long)r->packets);
    r->ended = true;
    return 1;
}

/* -------------------------------------------------------------------------------------------------- values of messages */

static const char *wanted(const level *l)
{
    const ProtobufCFieldDescriptor *const f = l->field;
    if (l->place == UNKNOWN || (l->place == LINE || l->place == HEADER))
        return l->place == UNKNOWN ? "bytes as base64" : "another kind of value";
    if (l->place == MESSAGE && f != NULL && f->label == PROTOBUF_C_LABEL_REPEATED)
        return "a list";
    if (f == NULL)
        return "bytes as base64";
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return "true or false";
    case PROTOBUF_C_TYPE_STRING:
        return "a text";
    case PROTOBUF_C_TYPE_BYTES:
        return "bytes as base64";
    case PROTOBUF_C_TYPE_MESSAGE:
        return "an object";
    default:
        return "a number";
    }
}

static int wrong(reading *r, const char *found)
{
    const level *const l = top(r);
    if (!r->begun && l->place != LINE)
        return foreign(r);
    if (l->place == OUTSIDE)
        return refuse(r, ZT_E_DAMAGED, "an object was wanted, but there is %s", found);
    const bool own = (l->place == LINE || l->place == HEADER) && keys[r->key].name != NULL;
    const char *const name = l->field != NULL ? l->field->name : own ? keys[r->key].name : ZV_UNKNOWN;
    return refuse(r, ZT_E_DAMAGED, "%s: %s was wanted, but there is %s", name, wanted(l), found);
}

/* The field that a single value belongs to, its tag written where it needs one. NULL: none fits here. */
static const ProtobufCFieldDescriptor *field_for_value(reading *r)
{
    level *const l = top(r);
    if (l->place == ARRAY)
        l->any = true;
    else if (l->place != MESSAGE || l->field == NULL || l->field->label == PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    return l->field;
}

static bool is_packed(const ProtobufCFieldDescriptor *f)
{
    return f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_BYTES && f->type != PROTOBUF_C_TYPE_MESSAGE;
}

static int scalar(reading *r, const ProtobufCFieldDescriptor *f, const char *text, size_t n)
{
    if (top(r)->place == MESSAGE)
        zv_wire_tag(&r->wire, f);
    const char *const instead = zv_wire_number(&r->wire, f, text, n);
    if (instead != NULL)
        return refuse(r, ZT_E_DAMAGED, "%s: %s was wanted, but there is %s", f->name, instead,
                      shown((const unsigned char *)text, n, (char[44]){0}));
    return wire_state(r);
}

static int own_number(reading *r, const char *text, size_t n)
{
    static const ProtobufCFieldDescriptor any = {.type = PROTOBUF_C_TYPE_UINT64};
    uint8_t *const bytes = zv_wire_room(&r->wire, 10);
    const size_t before = r->wire.n;
    const uint64_t most = top(r)->place == HEADER && r->key == K_FLAGS ? UINT8_MAX : keys[r->key].most;
    if (bytes == NULL)
        return wire_state(r);
    if (most == 0 || zv_wire_number(&r->wire, &any, text, n) != NULL)
        return wrong(r, shown((const unsigned char *)text, n, (char[44]){0}));
    uint64_t v = 0;
    for (size_t i = before; i < r->wire.n; i++)
        v |= (uint64_t)(r->wire.at[i] & 0x7f) << (7 * (i - before));
    r->wire.n = before;
    if (v > most)
        return wrong(r, shown((const unsigned char *)text, n, (char[44]){0}));
    r->numbers[r->key] = v;
    return 1;
}

static int on_number(void *ctx, const char *text, size_t n)
{
    reading *const r = ctx;
    r->since_token = 0;
    if (top(r)->place == LINE || top(r)->place == HEADER)
        return own_number(r, text, n);
    const ProtobufCFieldDescriptor *const f = field_for_value(r);
    return f != NULL && is_packed(f) && f->type != PROTOBUF_C_TYPE_BOOL ? scalar(r, f, text, n) : wrong(r, "a number");
}

static int on_string(void *ctx, const unsigned char *text, size_t n)
{
    reading *const r = ctx;
    level *const l = top(r);
    r->since_token = 0;
    if (l->place == LINE && r->key == K_UUID) {
        size_t size = 0;
        uint8_t bytes[18];
        if (n != 24 || !zv_base64_get(text, n, bytes, &size) || size != sizeof(r->uuid))
            return refuse(r, ZT_E_DAMAGED, "uuid: 16 bytes as base64 were wanted, but there is \"%s\"", shown(text, n, (char[44]){0}));
        memcpy(r->uuid, bytes, sizeof(r->uuid));
        return 1;
    }
    if (l->place == LINE && r->key == K_RAW)
        return base64(r, text, n);
    if ((l->place == LINE || l->place == HEADER) && keys[r->key].most > 0)
        return own_number(r, (const char *)text, n);
    if (l->place == UNKNOWN)
        return base64(r, text, n);
    if (l->place == BYTES_OF_TEXT) {
        if (l->any)
            return wrong(r, "a second text");
        l->any = true;
        return base64(r, text, n);
    }
    const ProtobufCFieldDescriptor *const f = field_for_value(r);
    if (f == NULL || f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_BOOL)
        return wrong(r, "a text");
    if (is_packed(f))
        return scalar(r, f, (const char *)text, n);
    zv_wire_tag(&r->wire, f);
    const size_t start = r->wire.n;
    if (f->type == PROTOBUF_C_TYPE_STRING && memchr(text, 0, n) != NULL)
        return refuse(r, ZT_E_DAMAGED, "%s: a text with a zero byte in it", f->name);
    if (f->type == PROTOBUF_C_TYPE_STRING)
        zv_wire_bytes(&r->wire, text, n);
    else if (!base64(r, text, n))
        return 0;
    zv_wire_length(&r->wire, start);
    return wire_state(r);
}

static int on_boolean(void *ctx, int value)
{
    reading *const r = ctx;
    r->since_token = 0;
    const ProtobufCFieldDescriptor *const f = field_for_value(r);
    if (f == NULL || f->type != PROTOBUF_C_TYPE_BOOL)
        return wrong(r, value ? "true" : "false");
    if (top(r)->place == MESSAGE)
        zv_wire_tag(&r->wire, f);
    zv_wire_varint(&r->wire, value != 0);
    return wire_state(r);
}

static int on_null(void *ctx)
{
    return wrong(ctx, "null");
}

/* ------------------------------------------------------------------------------------------------------------ nesting */

static int on_start_map(void *ctx)
{
    reading *const r = ctx;
    const level *const l = top(r);
    r->since_token = 0;
    if (r->ended)
        return refuse(r, ZT_E_DAMAGED, "something stands behind the line that ends the trace");
    if (l->place == OUTSIDE) {
        r->seen = 0;
        r->key = K_NONE;
        r->wire.n = 0;
        memset(r->numbers, 0, sizeof(r->numbers));
        return push(r, (level){.place = LINE});
    }
    if (l->place == LINE && r->key == K_PACKET)
        return push(r, (level){.place = MESSAGE, .type = &zetrace__packet__descriptor});
    if (l->place == LINE && r->key == K_HEADER)
        return push(r, (level){.place = HEADER});
    const ProtobufCFieldDescriptor *const f = field_for_value(r);
    if (f == NULL || (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING))
        return wrong(r, "an object");
    const size_t tag = r->wire.n;
    zv_wire_tag(&r->wire, f);
    if (f->type == PROTOBUF_C_TYPE_STRING)
        return push(r, (level){.place = BYTES_OF_TEXT, .field = f, .tag = tag, .start = r->wire.n});
    return push(r, (level){.place = MESSAGE, .type = f->descriptor, .tag = tag, .start = r->wire.n});
}

static int own_key(reading *r, enum place place, const unsigned char *name, size_t n)
{
    for (enum key k = K_FIRST; k < K_COUNT; k++)
        if ((keys[k].place == place || (k == K_FLAGS && place == HEADER)) && strlen(keys[k].name) == n && memcmp(keys[k].name, name, n) == 0) {
            if (has(r, k))
                return refuse(r, ZT_E_DAMAGED, "%s stands twice in an object", keys[k].name);
            r->seen |= 1u << k;
            r->key = k;
            return 1;
        }
    return r->begun ? refuse(r, ZT_E_DAMAGED, "nothing is called \"%s\" there", shown(name, n, (char[44]){0})) : foreign(r);
}

static int on_key(void *ctx, const unsigned char *name, size_t n)
{
    reading *const r = ctx;
    level *const l = top(r);
    char field[64];
    r->since_token = 0;
    if (l->place == LINE || l->place == HEADER)
        return own_key(r, l->place, name, n);
    if (l->place == BYTES_OF_TEXT)
        return n == strlen(ZV_BASE64) && memcmp(name, ZV_BASE64, n) == 0 ? 1 : wrong(r, "another object than {\"" ZV_BASE64 "\":}");
    l->field = NULL;
    if (n == strlen(ZV_UNKNOWN) && memcmp(name, ZV_UNKNOWN, n) == 0)
        return 1;
    memcpy(field, name, n < sizeof(field) ? n : 0);
    field[n < sizeof(field) ? n : 0] = '\0';
    l->field = protobuf_c_message_descriptor_get_field_by_name(l->type, field);
    return l->field != NULL && strlen(field) == n
               ? 1
               : refuse(r, ZT_E_DAMAGED, "%s has no field \"%s\"; it may be of a newer zetrace", l->type->short_name,
                        shown(name, n, (char[44]){0}));
}

static int on_end_map(void *ctx)
{
    reading *const r = ctx;
    const level l = *top(r);
    r->since_token = 0;
    r->depth--;
    if (l.place == LINE)
        return end_of_line(r);
    if (l.place == HEADER)
        r->key = K_NONE;
    if (l.place == BYTES_OF_TEXT && !l.any) {
        r->depth++;
        return wrong(r, "an empty object");
    }
    if (l.place == BYTES_OF_TEXT || (l.place == MESSAGE && top(r)->place != LINE))
        zv_wire_length(&r->wire, l.start);
    return wire_state(r);
}

static int on_start_array(void *ctx)
{
    reading *const r = ctx;
    const level *const l = top(r);
    r->since_token = 0;
    if (l->place == MESSAGE && l->field == NULL)
        return push(r, (level){.place = UNKNOWN});
    if (l->place != MESSAGE || l->field->label != PROTOBUF_C_LABEL_REPEATED)
        return wrong(r, "a list");
    const size_t tag = r->wire.n;
    if (is_packed(l->field))
        zv_wire_tag(&r->wire, l->field);
    return wire_state(r) && push(r, (level){.place = ARRAY, .field = l->field, .tag = tag, .start = r->wire.n});
}

static int on_end_array(void *ctx)
{
    reading *const r = ctx;
    const level l = *top(r);
    r->since_token = 0;
    r->depth--;
    if (l.place == ARRAY && is_packed(l.field)) {
        if (l.any)
            zv_wire_length(&r->wire, l.start);
        else
            r->wire.n = l.tag;
    }
    return wire_state(r);
}

/* ------------------------------------------------------------------------------------------------------------ reading */

/* One line, or a part of one. */
static bool feed(reading *r, yajl_handle parser, const unsigned char *text, size_t n)
{
    r->since_token += n;
    if (r->since_token > TOKEN_BYTES)
        return refuse(r, ZT_E_LIMIT, "a text or number of more than %u MiB", (unsigned)TOKEN_BYTES >> 20);
    if (yajl_parse(parser, text, n) == yajl_status_ok)
        return true;
    if (r->error->status == ZT_OK && !r->begun)
        return foreign(r);
    return refuse(r, ZT_E_DAMAGED, "that is no JSON; 'zetrace export --format=json' made other lines");
}

static bool feed_lines(reading *r, yajl_handle parser, const unsigned char *block, size_t n)
{
    while (n > 0) {
        const unsigned char *const newline = memchr(block, '\n', n);
        const size_t part = newline != NULL ? (size_t)(newline - block) + 1 : n;
        if (!feed(r, parser, block, part))
            return false;
        r->line += newline != NULL;
        block += part;
        n -= part;
    }
    return true;
}

/* The parser begins a token anew with every block: while one goes on, blocks grow, or a long text would take time by its square. */
static unsigned char *read_block(reading *r, FILE *in, unsigned char *block, size_t *room, size_t *n)
{
    if (block == NULL || r->since_token >= *room) {
        *room = block == NULL ? BLOCK : *room * 2;
        free(block);
        block = malloc(*room);
    }
    *n = block != NULL ? fread(block, 1, *room, in) : 0;
    return block;
}

static void read_all(reading *r, FILE *in, yajl_handle parser)
{
    unsigned char *block = NULL;
    size_t n = 0, room = 0;
    struct stat st;
    r->size = fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    while ((block = read_block(r, in, block, &room, &n)) != NULL && n > 0 && feed_lines(r, parser, block, n)) {
        r->bytes += n;
        if (r->options->progress != NULL)
            r->options->progress->step(r->options->progress->ctx, r->bytes, r->size);
    }
    free(block);
    if (r->error->status != ZT_OK)
        return;
    if (block == NULL || ferror(in)) {
        refuse(r, block == NULL ? ZT_E_MEMORY : ZT_E_IO, "%s", strerror(errno));
    } else if (r->bytes == 0) {
        r->error->status = ZT_E_FOREIGN;
        snprintf(r->error->text, sizeof(r->error->text), "%.80s: is empty; a trace as JSON was wanted", r->name);
    } else if (!r->begun && top(r)->place == OUTSIDE) {
        foreign(r);
    } else if (!r->ended) {
        refuse(r, ZT_E_DAMAGED, "it ends here, behind %llu packets, without the line that ends a trace: it was cut",
               (unsigned long long)r->packets);
    }
}

int zv_json_read(FILE *in, const char *name, const char *path, const zv_import_options *options, zt_error *error)
{
    static const yajl_callbacks callbacks = {.yajl_null = on_null, .yajl_boolean = on_boolean, .yajl_number = on_number, .yajl_string = on_string,
                                             .yajl_start_map = on_start_map, .yajl_map_key = on_key, .yajl_end_map = on_end_map,
                                             .yajl_start_array = on_start_array, .yajl_end_array = on_end_array};
    reading r = {.name = name, .line = 1, .path = path, .options = options, .error = error};
    *error = (zt_error){.status = ZT_OK};
    const yajl_handle parser = yajl_alloc(&callbacks, NULL, &r);
    if (parser == NULL) {
        refuse(&r, ZT_E_MEMORY, "no memory for a parser");
        return error->status;
    }
    yajl_config(parser, yajl_allow_multiple_values, 1);
    read_all(&r, in, parser);
    yajl_free(parser);
    free(r.wire.at);
    if (r.writer != NULL && error->status == ZT_OK) {
        zt_writer_close(r.writer, NULL, error);
    } else if (r.writer != NULL) {
        zt_writer_abandon(r.writer);
    }
    return error->status;
}
