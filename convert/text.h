/* SPDX-License-Identifier: MIT */
/* Texts of a trace as JSON. Control characters, those above 0x7f too, never reach a terminal as such. Private to convert/. */
#ifndef ZV_TEXT_H
#define ZV_TEXT_H

#include <stdbool.h>
#include <stdio.h>

bool zv_text_is_utf8(const char *text);
/* A copy, to be freed, in which what is no UTF-8 has become U+FFFD; NULL when memory is out. */
char *zv_text_clean(const char *text);
/* With its quotes. What is no UTF-8 becomes U+FFFD. */
void zv_text_put(FILE *out, const char *text);

#endif
