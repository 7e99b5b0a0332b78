#include "ndtd/nearest_name.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 127, GUESS = 1000 };

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
    return (struct ndtd_nearest){.word = word, .name = NULL, .distance = SIZE_MAX};
}

/* Whether two parts are near: a part with more than a third of other characters is another word, and so is a short
 * one with another first letter ("gpu" is not "cpu"). */
static int is_near(const char *part, const char *other, size_t distance)
{
    const size_t length = strlen(part);
    return distance == 0 || (distance <= least(length / 3, 4) && (length > 4 || part[0] == other[0]));
}

/* The part after the last dot; copies the part before it. */
static const char *split(const char *name, char section[WORD_MAX + 1])
{
    const char *dot = strrchr(name, '.');
    snprintf(section, WORD_MAX + 1, "%.*s", dot ? (int)(dot - name) : 0, name);
    return dot ? dot + 1 : name;
}

/* Distance of the parts after the dot; at most 1 where the word lacks what follows an underscore, such as a unit.
 */
static size_t distance_of_tails(const char *tail, const char *end)
{
    const size_t length = strlen(tail), distance = ndtd_edit_distance(tail, end);
    return length > 4 && strncmp(tail, end, length) == 0 && end[length] == '_' ? least(distance, 1) : distance;
}

/* Distance of two names; SIZE_MAX: not near. From GUESS on the section differs or is missing. */
static size_t distance_of(const char *word, const char *name)
{
    char section[WORD_MAX + 1], other[WORD_MAX + 1];
    const size_t whole = ndtd_edit_distance(word, name);
    if (whole == SIZE_MAX)
        return SIZE_MAX;
    const char *tail = split(word, section), *end = split(name, other);
    const size_t of_tail = distance_of_tails(tail, end), of_section = ndtd_edit_distance(section, other);
    if (is_near(tail, end, of_tail) && is_near(section, other, of_section))
        return of_tail + of_section;
    if (whole == 1 && is_near(word, name, whole)) /* a dot is missing or too much */
        return whole;
    return *other &&
                   (*section ? of_tail <= 1 && strncmp(tail, end, strlen(tail)) == 0 : is_near(tail, end, of_tail))
               ? GUESS + of_tail
               : SIZE_MAX;
}

void ndtd_nearest_consider(struct ndtd_nearest *nearest, const char *name)
{
    const size_t distance = distance_of(nearest->word, name);
    if (distance == nearest->distance && distance >= GUESS)
        nearest->is_ambiguous = 1;
    if (distance >= nearest->distance)
        return;
    nearest->distance = distance;
    nearest->name = name;
    nearest->is_ambiguous = 0;
}

void ndtd_nearest_hint(const struct ndtd_nearest *nearest, char *text, size_t size)
{
    if (nearest->name && !nearest->is_ambiguous)
        snprintf(text, size, "; did you mean '%s'?", nearest->name);
    else if (size)
        text[0] = '\0';
}
