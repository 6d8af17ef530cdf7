/* SPDX-License-Identifier: MIT */
/* The peer: an LTTng-UST tracepoint at entry and one at exit, with the fields of the call. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER zebench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./peer_tp.h"

#if !defined(PEER_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEER_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(zebench, one_entry, LTTNG_UST_TP_ARGS(uint64_t, a),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, a, a)))
LTTNG_UST_TRACEPOINT_EVENT(zebench, seven_entry,
                           LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d, uint64_t, e, uint32_t, f, uint64_t, g),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, a, a) lttng_ust_field_integer_hex(uint64_t, b, b)
                                                   lttng_ust_field_integer_hex(uint64_t, c, c) lttng_ust_field_integer_hex(uint64_t, d, d)
                                                       lttng_ust_field_integer_hex(uint64_t, e, e)
                                                           lttng_ust_field_integer_hex(uint32_t, f, f)
                                                               lttng_ust_field_integer_hex(uint64_t, g, g)))
LTTNG_UST_TRACEPOINT_EVENT(zebench, leave, LTTNG_UST_TP_ARGS(uint32_t, result),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, result, result)))

#endif
#include <lttng/tracepoint-event.h>
