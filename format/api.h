/* SPDX-License-Identifier: MIT */
/*
 * The Level Zero API as data. format/api/ holds the table in text; format/api/gen.py turns it into the arrays that
 * are declared here. Nothing in this header allocates, and all data is read-only: any thread may use it.
 *
 * Hand-written code asks the table what kind of thing a function or parameter is; it never names functions in a list.
 */
#ifndef ZT_API_H
#define ZT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum zt_ns { ZT_NS_ZE, ZT_NS_ZET, ZT_NS_ZES, ZT_NS_ZER, ZT_NS_COUNT };

/* What a value of a type is. */
enum zt_class {
    ZT_VOID,     /* bytes of no known type */
    ZT_UINT,     /* unsigned integer of 1, 2, 4 or 8 bytes; size_t is 8 */
    ZT_INT,      /* signed integer */
    ZT_FLOAT,    /* float or double */
    ZT_BOOL,     /* ze_bool_t */
    ZT_CHAR,     /* char: text */
    ZT_ENUM,     /* 4 bytes, one of the type's values */
    ZT_FLAGS,    /* 4 bytes, any of the type's values */
    ZT_HANDLE,   /* 8 bytes, names a driver object */
    ZT_POINTER,  /* 8 bytes that point to something the table does not describe */
    ZT_FUNCTION, /* 8 bytes, a callback */
    ZT_STRUCT,
    ZT_UNION
};

enum zt_dir { ZT_IN = 1, ZT_OUT = 2, ZT_ON_ERROR = 4 /* written even when the call fails */ };

/* How a field refers to its data. The element type is the field's `type`. */
enum zt_shape {
    ZT_VALUE,    /* in place: a scalar, enum, handle, struct by value, or inline array of `array_len` elements */
    ZT_ONE,      /* pointer to one element */
    ZT_ARRAY,    /* pointer to `count` elements */
    ZT_BLOB,     /* pointer to `count` bytes */
    ZT_STRING,   /* pointer to a NUL-terminated string */
    ZT_PNEXT,    /* pointer to a chain of structs that begin with stype and pNext */
    ZT_ADDRESS,  /* an address: kept as a number, never followed at call time */
    ZT_OPAQUE    /* a host pointer that means something to the program only (user data, callback tables) */
};

/*
 * A number that other fields hold. Names are siblings: parameters of the same function or members of the same struct.
 * ZT_X_FUNC_DEREF names a parameter of the function from inside a struct that hangs on one of its pNext chains.
 */
enum zt_expr_op {
    ZT_X_NONE,        /* not known */
    ZT_X_CONST,       /* a */
    ZT_X_FIELD,       /* value of sibling a, times b if b != 0 */
    ZT_X_DEREF,       /* *sibling a, times b if b != 0 */
    ZT_X_FUNC_DEREF,  /* *parameter a of the function */
    ZT_X_PATH,        /* sibling a points to a struct; its member b (index into that struct's members) */
    ZT_X_ELEMENT,     /* sibling a is an array; its element with the index of the outer array's element */
    ZT_X_STRLEN,      /* NUL-terminated once the call has returned */
    ZT_X_REGION,      /* bytes that the copy region in sibling a touches; sibling b is the pitch, c the slice pitch */
    ZT_X_LOOKUP       /* depends on an earlier call (kernel's argument count, register set's width): see `note` */
};
typedef struct zt_expr {
    uint8_t op;
    int16_t a, b, c;
} zt_expr;

/* What a parameter is to the function. */
enum zt_role {
    ZT_R_NONE,
    ZT_R_SELF,        /* the object the call is about, where no word below fits; it is always parameter 0 */
    ZT_R_CREATE,      /* out handle of a new object: a new generation */
    ZT_R_GET,         /* out handle of an object that was there before (devices, drivers, queues of a list) */
    ZT_R_DESTROY,     /* the object ends with this call's ENTER */
    ZT_R_ALLOC,       /* out address of a new allocation; its size is in the parameter with ZT_R_SIZE */
    ZT_R_FREE,        /* address of an allocation that ends with this call's ENTER */
    ZT_R_CONTEXT, ZT_R_DEVICE, ZT_R_QUEUE, ZT_R_LIST, ZT_R_LISTS, ZT_R_FENCE, ZT_R_EVENT, ZT_R_KERNEL, ZT_R_MODULE,
    ZT_R_SIGNAL,      /* event that the appended command signals */
    ZT_R_WAITS,       /* events that the appended command waits for */
    ZT_R_TIMEOUT,     /* nanoseconds */
    ZT_R_PTR,         /* address the call is about */
    ZT_R_SIZE,        /* bytes at ZT_R_PTR or ZT_R_ALLOC */
    ZT_R_COUNT,       /* in/out count of an array (two-call idiom) */
    ZT_R_DESC,        /* creation descriptor */
    ZT_R_EXT_NAME,    /* name of an extension function */
    ZT_R_EXT_ADDRESS, /* out: address of an extension function, bypasses every layer */
    ZT_R_DEVICE_TIME, /* out: the clock of ZT_R_DEVICE, in its ticks */
    ZT_R_COUNT_OF_ROLES
};

/* What a call does. */
enum zt_kind {
    ZT_K_OTHER,
    ZT_K_INIT,         /* first call of a process */
    ZT_K_GET,          /* reads properties or enumerates: no effect */
    ZT_K_CREATE, ZT_K_DESTROY,
    ZT_K_ALLOC, ZT_K_FREE,
    ZT_K_APPEND,       /* adds one command to ZT_R_LIST */
    ZT_K_CLOSE, ZT_K_RESET,
    ZT_K_EXECUTE,      /* submits ZT_R_LISTS to ZT_R_QUEUE or to an immediate list */
    ZT_K_SYNC,         /* waits on the host for ZT_R_SELF, at most ZT_R_TIMEOUT */
    ZT_K_QUERY,        /* asks for completion of ZT_R_SELF: SUCCESS or NOT_READY */
    ZT_K_HOST_SIGNAL, ZT_K_HOST_RESET,
    ZT_K_RESIDENT, ZT_K_EVICT,
    ZT_K_SET,          /* changes state of ZT_R_SELF */
    ZT_K_EXT_LOOKUP,   /* hands out an extension function's address */
    ZT_K_MAP, ZT_K_UNMAP /* virtual memory */
};

/* Flags of a function. */
enum zt_func_flags {
    ZT_F_IMMEDIATE = 1 << 0,     /* creates an immediate list */
    ZT_F_IN_ORDER_RESULT = 1 << 1,
    ZT_F_ONE_THREAD = 1 << 2,    /* "must not be called from simultaneous threads with the same handle" */
    ZT_F_EXTENSION = 1 << 3,     /* name ends in Exp/Ext or first seen after 1.0 as an extension: may be got by name */
    ZT_F_CALLBACK = 1 << 4,      /* takes a callback or user data: not replayable as it is */
    ZT_F_OS_RESOURCE = 1 << 5,   /* fds, pids or IPC handles in its arguments */
    ZT_F_BARRIER = 1 << 6        /* appended without wait events, it orders everything before it on its queue */
};

typedef struct zt_field {
    const char *name;
    const char *decl;     /* C type as in the header, e.g. "const void*" */
    uint16_t type;        /* index into zt_types: of the element where the shape is a pointer */
    uint8_t dir;          /* enum zt_dir bits: who writes what the field refers to */
    uint8_t shape;        /* enum zt_shape */
    uint8_t inner;        /* shape of the element where it is a pointer itself (char**, T**), else ZT_VALUE */
    uint8_t role;         /* enum zt_role; ZT_R_NONE in structs but for documented ones */
    uint8_t optional;     /* may be NULL */
    uint8_t access;       /* ZT_ADDRESS: enum zt_dir bits, what the *device* does there (IN reads, OUT writes) */
    uint16_t offset;      /* struct member: byte offset. Parameter: index of its first 8-byte word */
    uint16_t size;        /* bytes in place */
    uint16_t array_len;   /* inline array: elements, else 0 */
    zt_expr count;        /* ZT_ARRAY: elements. ZT_BLOB: bytes. ZT_ADDRESS: bytes accessed */
    zt_expr inner_count;  /* inner ZT_ARRAY/ZT_BLOB: elements or bytes of each */
    const char *note;     /* hand-written remark, or NULL */
} zt_field;

typedef struct zt_enum_value {
    const char *name;
    uint32_t value;
} zt_enum_value;

typedef struct zt_type {
    const char *name;        /* "uint32_t", "ze_context_desc_t" */
    uint8_t cls;             /* enum zt_class */
    uint8_t ns;              /* enum zt_ns */
    uint16_t align;
    uint32_t size;
    int64_t stype;           /* struct: value of its stype member, else -1 */
    const zt_field *fields;  /* struct and union members */
    const zt_enum_value *values;
    uint16_t n_fields;
    uint16_t n_values;
    const char *object;      /* handle: word used in object names, "queue", "list", "event"; else NULL */
    uint16_t base;           /* handle: type it is an alias of (zet_device_handle_t -> ze_device_handle_t), else itself */
    uint16_t since;          /* spec version, major << 8 | minor */
} zt_type;

typedef struct zt_func {
    const char *name;
    uint8_t ns;
    uint8_t kind;            /* enum zt_kind */
    uint8_t n_params;
    uint8_t n_words;         /* 8-byte words of all parameters together */
    uint16_t flags;          /* enum zt_func_flags */
    uint16_t since;          /* spec version of the first header that has it, major << 8 | minor */
    uint16_t table;          /* index into zt_tables */
    uint16_t slot;           /* index of its pointer in that DDI table */
    uint16_t return_type;    /* index into zt_types: ze_result_t for all but a few */
    const zt_field *params;
} zt_func;

/* A DDI table: what one z*Get*ProcAddrTable fills. */
typedef struct zt_ddi {
    const char *name;        /* "ze_command_list_dditable_t" */
    const char *getter;      /* "zeGetCommandListProcAddrTable" */
    uint16_t n_slots;
    uint8_t mandatory;       /* loader 1.8.12 fails to initialise without it */
} zt_ddi;

extern const zt_type zt_types[];
extern const unsigned zt_n_types;
extern const zt_func zt_funcs[];   /* function ids are indices; sorted by namespace, then as in the headers */
extern const unsigned zt_n_funcs;
extern const zt_ddi zt_tables[];
extern const unsigned zt_n_tables;
extern const uint32_t zt_api_version; /* major << 16 | minor of the spec the table describes */

/* @return the id of the function with that name, or -1. Binary search. */
int zt_func_find(const char *name);
/* @return the type with that name, or NULL. Binary search. */
const zt_type *zt_type_find(const char *name);
/* @return the struct that `stype` means on a pNext chain of a function of namespace `ns`, or NULL if unknown. */
const zt_type *zt_struct_by_stype(enum zt_ns ns, uint32_t stype);
/* @return the name of an enum's value, or NULL. For flags, one bit at a time. */
const char *zt_enum_name(const zt_type *type, uint32_t value);
/*
 * What a flag or mode of a creation descriptor makes of the new object: a set of enum zt_mode. By the ends of the values' names,
 * which queues, lists and events of all kinds share.
 */
enum zt_mode { ZT_M_IN_ORDER = 1 << 0, ZT_M_SYNCHRONOUS = 1 << 1, ZT_M_TIMESTAMPS = 1 << 2 };
unsigned zt_modes(const zt_type *type, uint32_t value);
/* Whether a ze_result_t is one that drivers give once earlier work has failed: DEVICE_LOST, OUT_OF_DEVICE_MEMORY, UNKNOWN. */
bool zt_is_fault(int64_t result);
/* @return the first parameter with that role, or NULL. */
const zt_field *zt_param_by_role(const zt_func *func, enum zt_role role);

#ifdef __cplusplus
}
#endif
#endif
