/* SPDX-License-Identifier: MIT */
#include "base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void zv_base64_put(FILE *out, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t v = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        const char quad[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=', left > 2 ? digits[v & 63] : '='};
        fwrite(quad, 1, sizeof(quad), out);
    }
}

static int digit(uint8_t c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

bool zv_base64_get(const uint8_t *text, size_t n, uint8_t *out, size_t *size)
{
    *size = 0;
    if (n % 4 != 0)
        return false;
    for (size_t i = 0; i < n; i += 4) {
        const unsigned padding = i + 4 < n || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
        uint32_t v = 0;
        for (unsigned k = 0; k < 4 - padding; k++) {
            const int d = digit(text[i + k]);
            if (d < 0)
                return false;
            v = v << 6 | (uint32_t)d;
        }
        v <<= 6 * padding;
        if (padding > 0 && (v & (padding == 1 ? 0xff : 0xffff)) != 0)
            return false; /* bits that stand for nothing */
        for (unsigned k = 0; k < 3 - padding; k++)
            out[(*size)++] = (uint8_t)(v >> (16 - 8 * k));
    }
    return true;
}
