/* SPDX-License-Identifier: MIT */
/*
 * The driver's kernels for copies and fills of buffers. A launch covers all of the kernel's work items; those beyond the
 * end that an argument tells do nothing.
 */
#include "fakegpu.h"

#include <string.h>

enum { VECTOR = 16 };

static uint64_t argument(const struct fakegpu_launch *launch, unsigned i)
{
    return launch->arguments[i][0];
}

static uint64_t items(const struct fakegpu_launch *launch)
{
    return (uint64_t)launch->groups[0] * launch->local[0];
}

static bool copy_items(const struct fakegpu_launch *launch, uint64_t width)
{
    const uint64_t limit = argument(launch, 2), n = limit < items(launch) ? limit : items(launch);
    return launch->copy(launch->device, argument(launch, 0) + argument(launch, 3), argument(launch, 1) + argument(launch, 4), n * width);
}

static bool copy_vectors(const struct fakegpu_launch *launch)
{
    return copy_items(launch, VECTOR);
}

static bool copy_bytes(const struct fakegpu_launch *launch)
{
    return copy_items(launch, 1);
}

static bool copy_all_bytes(const struct fakegpu_launch *launch)
{
    return launch->copy(launch->device, argument(launch, 0), argument(launch, 1), items(launch));
}

static bool fill_value(const struct fakegpu_launch *launch, uint64_t width)
{
    const uint32_t value = (uint32_t)argument(launch, 2);
    return launch->fill(launch->device, argument(launch, 0) + argument(launch, 1), &value, 4, items(launch) * width);
}

static bool fill_vectors(const struct fakegpu_launch *launch)
{
    return fill_value(launch, VECTOR);
}

static bool fill_bytes(const struct fakegpu_launch *launch)
{
    return fill_value(launch, 1);
}

/* The pattern lies in memory and goes on through the whole fill: item i takes its element i modulo count, from first on. */
static bool fill_pattern(const struct fakegpu_launch *launch, uint64_t from, uint64_t first, uint64_t count, size_t width)
{
    const uint64_t to = argument(launch, 0) + argument(launch, 1);
    for (uint64_t i = 0; i < items(launch); i++) {
        uint32_t element;
        if (!launch->read(launch->device, from + (first + i) % count * width, &element, width) ||
            !launch->write(launch->device, to + i * width, &element, width))
            return false;
    }
    return true;
}

static bool fill_pattern_of_group(const struct fakegpu_launch *launch)
{
    return fill_pattern(launch, argument(launch, 2) + argument(launch, 3), 0, launch->local[0], 1);
}

static bool fill_pattern_words(const struct fakegpu_launch *launch)
{
    return argument(launch, 3) == 0 || fill_pattern(launch, argument(launch, 2), 0, argument(launch, 3), 4);
}

/* Component k of an argument that is a vector of count. */
static uint64_t component(const struct fakegpu_launch *launch, unsigned i, unsigned count, unsigned k)
{
    const size_t width = launch->sizes[i] / count;
    uint64_t value = 0;
    if (width == 4 || width == 8)
        memcpy(&value, (const uint8_t *)launch->arguments[i] + k * width, width);
    return value;
}

/*
 * Where row y of plane z begins. Argument `origin` holds the first one's x, y and, in a vector of four, z; argument `pitch` the
 * bytes of a row, and in a vector of two those of a plane.
 */
static uint64_t row(const struct fakegpu_launch *launch, unsigned origin, unsigned pitch, bool planes, uint32_t y, uint32_t z)
{
    const unsigned origins = planes ? 4 : 2, pitches = planes ? 2 : 1;
    const uint64_t at = component(launch, origin, origins, 0) +
                        (component(launch, origin, origins, 1) + y) * component(launch, pitch, pitches, 0);
    return planes ? at + (component(launch, origin, origins, 2) + z) * component(launch, pitch, pitches, 1) : at;
}

static bool copy_rows(const struct fakegpu_launch *launch, uint64_t width, bool planes)
{
    const uint32_t rows = launch->groups[1] * launch->local[1], depth = planes ? launch->groups[2] * launch->local[2] : 1;
    for (uint32_t z = 0; z < depth; z++)
        for (uint32_t y = 0; y < rows; y++) {
            const uint64_t from = argument(launch, 0) + row(launch, 2, 4, planes, y, z);
            const uint64_t to = argument(launch, 1) + row(launch, 3, 5, planes, y, z);
            if (!launch->copy(launch->device, to, from, items(launch) * width))
                return false;
        }
    return true;
}

static bool copy_rectangle(const struct fakegpu_launch *launch)
{
    return copy_rows(launch, 1, false);
}

static bool copy_rectangle_vectors(const struct fakegpu_launch *launch)
{
    return copy_rows(launch, VECTOR, false);
}

static bool copy_box(const struct fakegpu_launch *launch)
{
    return copy_rows(launch, 1, true);
}

static bool copy_box_vectors(const struct fakegpu_launch *launch)
{
    return copy_rows(launch, VECTOR, true);
}

fakegpu_body *fake_builtin_body(const char *name)
{
    static const struct {
        const char *name;
        fakegpu_body *body;
    } bodies[] = {
        {"CopyBufferToBufferMiddleRegion", copy_vectors},
        {"CopyBufferToBufferSideRegion", copy_bytes},
        {"copyBufferToBufferBytesSingle", copy_all_bytes},
        {"CopyBufferRectBytes2d", copy_rectangle},
        {"CopyBufferRectBytesMiddle2d", copy_rectangle_vectors},
        {"CopyBufferRectBytes3d", copy_box},
        {"CopyBufferRectBytesMiddle3d", copy_box_vectors},
        {"FillBufferImmediate", fill_vectors},
        {"FillBufferImmediateLeftOver", fill_bytes},
        {"FillBufferSSHOffset", fill_pattern_of_group},
        {"FillBufferMiddle", fill_pattern_words},
    };
    for (size_t i = 0; i < COUNT(bodies); i++)
        if (strcmp(name, bodies[i].name) == 0)
            return bodies[i].body;
    return NULL;
}
