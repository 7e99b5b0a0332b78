/** @file
 * @brief Suggests a name for a misspelt word: the one with the smallest edit distance (insert, delete, replace,
 * swap of two neighbours). Pure, no allocation. */
#ifndef NDTD_NEAREST_NAME_H
#define NDTD_NEAREST_NAME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Search state: candidates are considered one by one, and the first of equally near ones wins. `word` and names
 * are borrowed. */
struct ndtd_nearest {
    const char *word;
    const char *name; /**< best so far; NULL if none is near enough */
    size_t distance;
    int is_ambiguous; /**< several sections have an option of this name */
};

/** Starts a search. */
struct ndtd_nearest ndtd_nearest_start(const char *word);
/** Compares one candidate. It is near if at most a third of its characters differ, and at most four; for dotted
 * names this holds for the section and for the part after the last dot. That part alone finds names without a
 * section or, where it is equal, with another one. */
void ndtd_nearest_consider(struct ndtd_nearest *nearest, const char *name);
/** Writes "; did you mean 'name'?" or an empty text. */
void ndtd_nearest_hint(const struct ndtd_nearest *nearest, char *text, size_t size);

/** The edit distance between two words. */
size_t ndtd_edit_distance(const char *a, const char *b);

#ifdef __cplusplus
}
#endif
#endif
