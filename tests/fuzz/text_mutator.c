#include "text_mutator.h"

#include <string.h>

#include "fuzz.h"

enum { MAX_WORD = 256 };

struct span {
    size_t at, end;
};

static int is_word(uint8_t byte)
{
    return byte > ' ' && !strchr(":,[]{}='\"#", byte);
}

static int is_name(const uint8_t *data, size_t size, struct span word)
{
    return word.end < size && (data[word.end] == ':' || data[word.end] == '=');
}

/* The word around or behind a random place; names seldom. */
static struct span find_word(const uint8_t *data, size_t size, struct ndt_random *random)
{
    struct span word = {0, 0};
    for (int left = 8; left > 0; left--) {
        word.at = fuzz_below(random, size);
        while (word.at < size && !is_word(data[word.at]))
            word.at++;
        while (word.at > 0 && word.at < size && is_word(data[word.at - 1]))
            word.at--;
        word.end = word.at;
        while (word.end < size && is_word(data[word.end]))
            word.end++;
        if (!is_name(data, size, word))
            break;
    }
    return word;
}

static struct span find_line(const uint8_t *data, size_t size, struct ndt_random *random)
{
    struct span line;
    line.at = fuzz_below(random, size);
    while (line.at > 0 && data[line.at - 1] != '\n')
        line.at--;
    line.end = line.at;
    while (line.end < size && data[line.end++] != '\n')
        ;
    return line;
}

static size_t put_limit(uint8_t *out, struct ndt_random *random)
{
    static const char *const words[] = {"0",
                                        "-0",
                                        "1",
                                        "-1",
                                        "2",
                                        "0.5",
                                        "-0.5",
                                        "1e3",
                                        "-1e3",
                                        "1e-320",
                                        "1e999",
                                        "-1e999",
                                        "nan",
                                        "-nan",
                                        "inf",
                                        "-inf",
                                        "0x10",
                                        "1e19",
                                        "2147483647",
                                        "2147483648",
                                        "4294967295",
                                        "4294967296",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1317042272.349000",
                                        "9223372036.854775807",
                                        "9223372036.854775808",
                                        "0.0000000000000000000000000000000000001",
                                        "1.",
                                        ".5",
                                        "+1",
                                        "1e",
                                        "--1",
                                        "true",
                                        "false",
                                        "on",
                                        "off",
                                        "yes",
                                        "~",
                                        "null",
                                        "[]",
                                        "{}",
                                        "*a",
                                        "&a",
                                        "!!str",
                                        "|",
                                        ">",
                                        "---",
                                        "...",
                                        "\\n",
                                        "\"",
                                        "'",
                                        "a b",
                                        "\xff",
                                        "\xc3\xa4",
                                        "auto",
                                        "cpu",
                                        "x",
                                        "%s%n"};
    if (fuzz_below(random, 16) == 0) {
        const size_t size = 1 + fuzz_below(random, MAX_WORD - 1);
        memset(out, '1', size);
        return size;
    }
    const char *word = words[fuzz_below(random, sizeof(words) / sizeof(words[0]))];
    memcpy(out, word, strlen(word));
    return strlen(word);
}

static size_t mutate_word(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random)
{
    uint8_t word[MAX_WORD];
    const struct span old = find_word(data, size, random);
    size_t count = old.end - old.at;
    if (count > MAX_WORD / 2 || fuzz_below(random, 2)) {
        count = put_limit(word, random);
    } else {
        memcpy(word, data + old.at, count);
        count = LLVMFuzzerMutate(word, count, sizeof(word));
    }
    return fuzz_replace(data, size, max_size, old.at, old.end, word, count);
}

/* A word or a line goes somewhere else, too, or away. */
static size_t move_span(uint8_t *data, size_t size, size_t max_size, int is_line, struct ndt_random *random)
{
    uint8_t copy[4 * MAX_WORD];
    const struct span from = is_line ? find_line(data, size, random) : find_word(data, size, random);
    struct span to = is_line ? find_line(data, size, random) : find_word(data, size, random);
    const size_t count = from.end - from.at;
    if (count > sizeof(copy))
        return size;
    memcpy(copy, data + from.at, count);
    if (fuzz_below(random, 3) == 0)
        return fuzz_replace(data, size, max_size, from.at, from.end, copy, 0);
    if (is_line && fuzz_below(random, 2))
        to.end = to.at; /* inserted before the line, not in place of it */
    return fuzz_replace(data, size, max_size, to.at, to.end, copy, count);
}

size_t text_mutate(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random)
{
    for (size_t left = 1 + fuzz_below(random, 4); left > 0; left--) {
        const size_t choice = fuzz_below(random, 16);
        if (size == 0 || choice == 0)
            size = LLVMFuzzerMutate(data, size, max_size);
        else if (choice < 10)
            size = mutate_word(data, size, max_size, random);
        else
            size = move_span(data, size, max_size, choice < 13, random);
    }
    return size;
}
