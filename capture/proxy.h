/* SPDX-License-Identifier: MIT */
/* The proxy driver; private to it. */
#ifndef ZC_PROXY_H
#define ZC_PROXY_H

#include <stddef.h>
#include <stdint.h>

/* Lets the real driver fill the table, then the layer wrap it on behalf of the loader that called. */
int zc_proxy_fill(const char *getter, uint32_t version, void *table, size_t size, void *caller);

#endif
