/* SPDX-License-Identifier: MIT */
/*
 * When commands ran, as far as the program asked for it: time stamps of the events that they signal, and what the program asked of the
 * device's clock, which makes times of the trace of them. Private to convert/.
 */
#ifndef ZV_DEVICE_TIME_H
#define ZV_DEVICE_TIME_H

#include "order/executions.h"

typedef struct zv_device_time zv_device_time;

zv_device_time *zv_device_time_new(void);
void zv_device_time_free(zv_device_time *times);
/* For each call at its LEAVE, when `objects` know of it. @return ZT_OK or ZT_E_MEMORY. */
int zv_device_time_call(zv_device_time *times, zt_trace *trace, const zt_objects *objects, const zt_call *call);

typedef struct zv_span {
    uint64_t begin, end; /* ns since the session's start */
    bool known;          /* recorded, or else begin and end are not set */
} zv_span;
/* Spans of all executions. @return ZT_OK or ZT_E_MEMORY. */
int zv_device_time_spans(const zv_device_time *times, const zo_execution *executions, size_t n, zv_span *spans);

#endif
