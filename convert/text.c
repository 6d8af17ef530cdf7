/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 character that begins there, 0 if none does. */
static size_t character(const uint8_t *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t size = p[0] < 0x80 ? 1 : (p[0] & 0xe0) == 0xc0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : (p[0] & 0xf8) == 0xf0 ? 4 : 0;
    if (size == 0 || size > n)
        return 0;
    uint32_t code = size == 1 ? p[0] : p[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    return code < least[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : size;
}

bool zv_text_is_utf8(const char *text)
{
    const uint8_t *const bytes = (const uint8_t *)text;
    const size_t n = strlen(text);
    for (size_t i = 0, size; i < n; i += size)
        if ((size = character(bytes + i, n - i)) == 0)
            return false;
    return true;
}

char *zv_text_clean(const char *text)
{
    const size_t n = strlen(text);
    char *const clean = malloc(n * 3 + 1), *to = clean;
    for (size_t i = 0, size; clean != NULL && i < n; i += size) {
        size = character((const uint8_t *)text + i, n - i);
        memcpy(to, size > 0 ? text + i : "\xef\xbf\xbd", size > 0 ? size : 3);
        to += size > 0 ? size : 3;
        size += size == 0;
    }
    if (clean != NULL)
        *to = '\0';
    return clean;
}

void zv_text_put(FILE *out, const char *text)
{
    const uint8_t *const bytes = (const uint8_t *)text;
    const size_t n = strlen(text);
    fputc('"', out);
    for (size_t i = 0, size; i < n; i += size) {
        const uint8_t *const p = bytes + i;
        size = character(p, n - i);
        if (size == 0) {
            fputs("\\ufffd", out);
            size = 1;
        } else if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p);
        } else if (*p < 0x20 || *p == 0x7f) {
            fprintf(out, "\\u%04x", *p);
        } else if (*p == 0xc2 && p[1] < 0xa0) {
            fprintf(out, "\\u%04x", p[1]);
        } else {
            fwrite(p, 1, size, out);
        }
    }
    fputc('"', out);
}
