#include "ndtd/nearest_name.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 127 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t ndtd_edit_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX)
        return SIZE_MAX;
    size_t rows[3][WORD_MAX + 1]; /* the last three rows of the table, in turn */
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *twice = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = least(least(now[j - 1], before[j]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], twice[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

struct ndtd_nearest ndtd_nearest_start(const char *word)
{
    /* A word that differs in more than half of its characters is not suggested. */
    return (struct ndtd_nearest){.word = word, .name = NULL, .distance = strlen(word) / 2 + 1};
}

void ndtd_nearest_consider(struct ndtd_nearest *nearest, const char *name)
{
    size_t distance = ndtd_edit_distance(nearest->word, name);
    const char *dot = strrchr(name, '.');
    if (dot) {
        const char *own = strrchr(nearest->word, '.');
        size_t tail = ndtd_edit_distance(own ? own + 1 : nearest->word, dot + 1);
        if (tail < SIZE_MAX)
            distance = least(distance, tail + 1);
    }
    if (distance >= nearest->distance)
        return;
    nearest->distance = distance;
    nearest->name = name;
}

void ndtd_nearest_hint(const struct ndtd_nearest *nearest, char *text, size_t size)
{
    if (nearest->name)
        snprintf(text, size, "; did you mean '%s'?", nearest->name);
    else if (size)
        text[0] = '\0';
}
