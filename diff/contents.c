/* SPDX-License-Identifier: MIT */
/* Two stretches of bytes as elements of a type. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static const struct view {
    const char *name;
    uint8_t size;
    char what; /* x: bytes; f: floating point, with its exponent's bits; i, u: integers */
    uint8_t exponent;
} views[] = {
    [ZD_BYTES] = {"bytes", 1, 'x', 0}, [ZD_F16] = {"f16", 2, 'f', 5}, [ZD_BF16] = {"bf16", 2, 'f', 8}, [ZD_F32] = {"f32", 4, 'f', 8},
    [ZD_F64] = {"f64", 8, 'f', 11},    [ZD_I8] = {"i8", 1, 'i', 0},   [ZD_I16] = {"i16", 2, 'i', 0},   [ZD_I32] = {"i32", 4, 'i', 0},
    [ZD_I64] = {"i64", 8, 'i', 0},     [ZD_U8] = {"u8", 1, 'u', 0},   [ZD_U16] = {"u16", 2, 'u', 0},   [ZD_U32] = {"u32", 4, 'u', 0},
    [ZD_U64] = {"u64", 8, 'u', 0},
};

int zd_view_of(const char *name)
{
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
        if (strcmp(views[i].name, name) == 0)
            return (int)i;
    return -1;
}

static uint64_t bits(const uint8_t *at, unsigned size)
{
    uint64_t x = 0;
    memcpy(&x, at, size);
    return x;
}

static double number(uint64_t x, const struct view *v)
{
    const unsigned width = v->size * 8u, mantissa = width - 1 - v->exponent;
    const uint64_t fraction = x & ((1ull << mantissa) - 1), exponent = x >> mantissa & ((1ull << v->exponent) - 1);
    const int bias = (1 << (v->exponent - 1)) - 1;
    double value;
    if (exponent == (1ull << v->exponent) - 1)
        value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp((double)fraction, 1 - bias - (int)mantissa);
    else
        value = ldexp((double)(fraction | 1ull << mantissa), (int)exponent - bias - (int)mantissa);
    return x >> (width - 1) & 1 ? -value : value;
}

static int64_t sign_extended(uint64_t x, unsigned size)
{
    const unsigned shift = 64 - 8 * size;
    return (int64_t)(x << shift) >> shift;
}

/* Floating-point numbers of one format, counted from -infinity: neighbours are one apart. */
static uint64_t place(uint64_t x, unsigned size)
{
    const uint64_t sign = 1ull << (size * 8 - 1);
    return x & sign ? sign - (x ^ sign) : x + sign;
}

static bool within(uint64_t x, uint64_t y, const struct view *v, const zd_tolerance *t)
{
    if (x == y)
        return true;
    if (v->what != 'f') {
        if (t->relative <= 0 || v->what == 'x')
            return false;
        const double p = v->what == 'i' ? (double)sign_extended(x, v->size) : (double)x;
        const double q = v->what == 'i' ? (double)sign_extended(y, v->size) : (double)y;
        return fabs(p - q) <= t->relative * fmax(fabs(p), fabs(q));
    }
    const double p = number(x, v), q = number(y, v);
    if (isnan(p) || isnan(q))
        return isnan(p) && isnan(q) && (t->ulp > 0 || t->relative > 0);
    if (p == q)
        return t->ulp > 0 || t->relative > 0; /* +0 and -0 */
    if (isinf(p) || isinf(q))
        return false;
    const uint64_t a = place(x, v->size), b = place(y, v->size);
    return (t->ulp > 0 && (a > b ? a - b : b - a) <= t->ulp) || (t->relative > 0 && fabs(p - q) <= t->relative * fmax(fabs(p), fabs(q)));
}

static void print(uint64_t x, const struct view *v, uint64_t element, char *text, size_t room)
{
    char value[48];
    if (v->what == 'f')
        snprintf(value, sizeof(value), "%.*g", v->size == 8 ? 17 : v->size == 4 ? 9 : 5, number(x, v));
    else if (v->what == 'i')
        snprintf(value, sizeof(value), "%" PRId64, sign_extended(x, v->size));
    else
        snprintf(value, sizeof(value), v->what == 'x' ? "0x%02" PRIx64 : "%" PRIu64, x);
    snprintf(text, room, "[%" PRIu64 "] %s", element, value);
}

bool zd_contents_differ(const void *a, const void *b, uint64_t size, int view, const zd_tolerance *tolerance, char *text_a, char *text_b,
                        size_t room, char *count, size_t count_room)
{
    const struct view *v = &views[view];
    const uint8_t *const p = a, *const q = b;
    const uint64_t elements = size / v->size, rest = elements * v->size;
    uint64_t first = UINT64_MAX, n = 0;
    for (uint64_t i = 0; i < elements; i++) {
        const uint64_t x = bits(p + i * v->size, v->size), y = bits(q + i * v->size, v->size);
        if (x == y || within(x, y, v, tolerance))
            continue;
        if (n++ == 0)
            first = i;
    }
    if (n > 0) {
        print(bits(p + first * v->size, v->size), v, first, text_a, room);
        print(bits(q + first * v->size, v->size), v, first, text_b, room);
        snprintf(count, count_room, "%" PRIu64 " of %" PRIu64 " %s differ", n, elements, v->name);
        return true;
    }
    if (memcmp(p + rest, q + rest, size - rest) == 0)
        return false;
    snprintf(text_a, room, "other bytes");
    snprintf(text_b, room, "other bytes");
    snprintf(count, count_room, "behind the last whole %s", v->name);
    return true;
}
