/* SPDX-License-Identifier: MIT */
/* What the generated table gives the lookups; private to format/api. */
#ifndef ZT_LOOKUP_H
#define ZT_LOOKUP_H

#include <stdint.h>

typedef struct zt__stype {
    uint32_t stype;
    uint16_t type;
} zt__stype;

extern const uint16_t zt__funcs_by_name[];       /* zt_n_funcs ids in alphabetical order */
extern const zt__stype *const zt__stypes[];      /* by namespace, sorted by stype */
extern const unsigned zt__n_stypes[];

#endif
