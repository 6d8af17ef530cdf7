/* SPDX-License-Identifier: MIT */
/* Bytes as text (RFC 4648). Strict, as the decoders of the usual libraries are not: they pass over what is no base64. */
#ifndef ZV_BASE64_H
#define ZV_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void zv_base64_put(FILE *out, const uint8_t *bytes, size_t n);
/* Writes to `out`, which has room for n / 4 * 3 bytes. @return false: that is not base64 with its padding. */
bool zv_base64_get(const uint8_t *text, size_t n, uint8_t *out, size_t *size);

#endif
