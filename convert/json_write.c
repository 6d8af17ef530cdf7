/* SPDX-License-Identifier: MIT */
/* Packets as JSON, by their descriptors: the mapping of protobuf itself, with two additions for what it has no place for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "convert.h"
#include "json.h"
#include "packet_header.h"
#include "text.h"

static void put_base64(FILE *out, const uint8_t *bytes, size_t n)
{
    fputc('"', out);
    zv_base64_put(out, bytes, n);
    fputc('"', out);
}

static void put_text(FILE *out, const char *text)
{
    if (zv_text_is_utf8(text)) {
        zv_text_put(out, text);
        return;
    }
    fputs("{\"" ZV_BASE64 "\":", out);
    put_base64(out, (const uint8_t *)text, strlen(text));
    fputc('}', out);
}

static void put_message(FILE *out, const ProtobufCMessage *m);

/* @return the size of a member of that type. */
static size_t put_value(FILE *out, const ProtobufCFieldDescriptor *f, const void *member)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        fprintf(out, "%" PRId32, *(const int32_t *)member);
        return sizeof(int32_t);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        fprintf(out, "%" PRIu32, *(const uint32_t *)member);
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: /* as text: many readers of JSON know doubles only */
        fprintf(out, "\"%" PRId64 "\"", *(const int64_t *)member);
        return sizeof(int64_t);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        fprintf(out, "\"%" PRIu64 "\"", *(const uint64_t *)member);
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_BOOL:
        fputs(*(const protobuf_c_boolean *)member ? "true" : "false", out);
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
        put_text(out, *(char *const *)member);
        return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES:
        put_base64(out, ((const ProtobufCBinaryData *)member)->data, ((const ProtobufCBinaryData *)member)->len);
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE:
        put_message(out, *(const ProtobufCMessage *const *)member);
        return sizeof(ProtobufCMessage *);
    default: /* the schema has no others; what is not written makes import differ, which tests see */
        fputs("null", out);
        return 0;
    }
}

static bool is_set(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    static const uint8_t zero[sizeof(ProtobufCBinaryData)];
    const uint8_t *const member = (const uint8_t *)m + f->offset;
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)((const uint8_t *)m + f->quantifier_offset) == f->id;
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(const void *const *)member != NULL;
    case PROTOBUF_C_TYPE_STRING:
        return *(char *const *)member != NULL && **(char *const *)member != '\0';
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)member)->len > 0;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return memcmp(member, zero, 8) != 0;
    default: /* protobuf_c_boolean is an int */
        return memcmp(member, zero, 4) != 0;
    }
}

/* Fields of a newer version, as they stand in the file, tag and contents: this build cannot know what they are. */
static void put_unknown(FILE *out, const ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *const u = &m->unknown_fields[i];
        uint8_t tag[5];
        size_t n = 0;
        for (uint64_t rest = (uint64_t)u->tag << 3 | u->wire_type; rest > 0; rest >>= 7)
            tag[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        fputs(i > 0 ? "," : "", out);
        put_base64(out, tag, n);
        fputc(',', out);
        put_base64(out, u->data, u->len);
    }
}

static void put_message(FILE *out, const ProtobufCMessage *m)
{
    const char *comma = "";
    fputc('{', out);
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const f = &m->descriptor->fields[i];
        const uint8_t *const member = (const uint8_t *)m + f->offset;
        const size_t n = f->label == PROTOBUF_C_LABEL_REPEATED ? *(const size_t *)((const uint8_t *)m + f->quantifier_offset) : 1;
        if (f->label != PROTOBUF_C_LABEL_REPEATED && !is_set(m, f))
            continue;
        if (n == 0)
            continue;
        fprintf(out, "%s\"%s\":", comma, f->name);
        comma = ",";
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            put_value(out, f, member);
            continue;
        }
        const uint8_t *at = *(const uint8_t *const *)member;
        for (size_t k = 0; k < n; k++) {
            fputc(k == 0 ? '[' : ',', out);
            at += put_value(out, f, at);
        }
        fputc(']', out);
    }
    if (m->n_unknown_fields > 0) {
        fprintf(out, "%s\"" ZV_UNKNOWN "\":[", comma);
        put_unknown(out, m);
        fputc(']', out);
    }
    fputc('}', out);
}

/* Whether packing the message gives the bytes that it was unpacked from. */
static bool is_plain(const Zetrace__Packet *message, const zt_packet *packet)
{
    if (zetrace__packet__get_packed_size(message) != packet->size)
        return false;
    uint8_t *const again = malloc(packet->size ? packet->size : 1);
    const bool plain = again != NULL && zetrace__packet__pack(message, again) == packet->size && memcmp(again, packet->data, packet->size) == 0;
    free(again);
    return plain;
}

static void put_header(FILE *out, const zt_packet *p)
{
    fprintf(out, ",\"header\":{\"kind\":%u,\"flags\":%u,\"first\":\"%" PRIu64 "\",\"calls\":%" PRIu32 ",\"late\":%" PRIu32 ",\"begin\":\"%" PRIu64
            "\",\"end\":\"%" PRIu64 "\",\"span\":%" PRIu32 "}",
            p->kind, p->flags, p->first, p->calls, p->late, p->begin, p->end, p->span);
}

static void put_packet(FILE *out, const zt_packet *packet)
{
    zt_packet usual = {0};
    Zetrace__Packet *const message = zt__packet_unpack(packet->data, packet->size);
    if (message != NULL && is_plain(message, packet)) {
        fputs("{\"packet\":", out);
        put_message(out, &message->base);
    } else {
        fputs("{\"raw\":", out);
        put_base64(out, packet->data, packet->size);
    }
    if (message != NULL)
        zv_header_of(&usual, message);
    if (message == NULL || !zv_same_header(packet, &usual))
        put_header(out, packet);
    fputs("}\n", out);
    if (message != NULL)
        zetrace__packet__free_unpacked(message, NULL);
}

void zv_json_write(zt_trace *trace, FILE *out, const zv_progress *progress)
{
    const zt_file_header *const header = zt_trace_header(trace);
    const size_t n = zt_trace_packets(trace);
    size_t written = 0;
    fprintf(out, "{\"" ZV_FIRST "\":%u,\"minor\":%u,\"flags\":%" PRIu32 ",\"uuid\":", ZV_JSON_VERSION, header->minor, header->flags);
    put_base64(out, header->uuid, sizeof(header->uuid));
    fputs("}\n", out);
    for (size_t i = 0; i < n && !ferror(out); i++) {
        zt_packet packet;
        if (zt_trace_packet(trace, i, &packet) == ZT_OK) {
            put_packet(out, &packet);
            written++;
        }
        if (progress != NULL)
            progress->step(progress->ctx, i + 1, n);
    }
    fprintf(out, "{\"packets\":%zu}\n", written);
}
