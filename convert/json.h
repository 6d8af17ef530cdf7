/* SPDX-License-Identifier: MIT */
/* Names that JSON traces have beside those of format/zetrace.proto. Private to convert/. */
#ifndef ZV_JSON_H
#define ZV_JSON_H

#define ZV_JSON_VERSION 1u
#define ZV_FIRST "zetrace_json" /* first member of the first line; its value is ZV_JSON_VERSION */
#define ZV_UNKNOWN "@unknown"   /* of any message: fields that the writer of the JSON did not know */
#define ZV_BASE64 "@base64"     /* in place of a text that is no UTF-8 */

#endif
