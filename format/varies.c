/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "format.h"

bool zt_varies(const zt_node *node)
{
    static const char *const words[] = {"imestamp", "uuid", "UUID", "kernelStart", "kernelEnd", "freq", "free", "pid", "bdf"};
    const char *const type = node->type ? node->type->name : "";
    if (node->func->ns == ZT_NS_ZES || (node->func->flags & ZT_F_OS_RESOURCE))
        return true;
    if (node->field != NULL && strcmp(node->field->name, "id") == 0)
        return true;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if ((node->field != NULL && strstr(node->field->name, words[i]) != NULL) || strstr(type, words[i]) != NULL ||
            strstr(node->func->name, words[i]) != NULL)
            return true;
    return false;
}
