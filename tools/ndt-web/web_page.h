/** @file
 * @brief The files of the page, embedded in the program by embed_page.cmake. */
#ifndef WEB_PAGE_H
#define WEB_PAGE_H

#include <stddef.h>

/** A file of tools/ndt-web/page. */
struct web_page_file {
    const char *name; /**< such as "index.html" */
    const char *type; /**< Content-Type */
    const char *hash; /**< hash of the bytes, for the ETag */
    const unsigned char *data;
    size_t size;
};
extern const struct web_page_file web_page_files[];
extern const size_t web_page_file_count;

#endif
