/* JSON from a browser, and from the files of a replay. What is accepted as a request can be encoded and
 * decoded, and encoded again to the same bytes. What is JSON is copied to JSON, and copied once more to the same
 * text. Refusals are one line. */
#include <string.h>

#include "fuzz.h"
#include "text_mutator.h"
#include "web_json.h"

static struct ndt_buffer first, second;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    ndt_buffer_init(&first);
    ndt_buffer_init(&second);
    return 0;
}

static void require_one_line(const struct ndt_error *err)
{
    FUZZ_REQUIRE(err->text[0], "refused without a reason");
    FUZZ_REQUIRE(!strpbrk(err->text, "\r\n"), "%s", err->text);
}

static void decode_and_encode(const struct ndt_buffer *from, struct ndt_buffer *to)
{
    struct ndt_request_message request;
    struct ndt_error err = {""};
    uint64_t id = 0;
    FUZZ_REQUIRE(ndt_request_decode(from->data, from->size, &request, &id, &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(ndt_request_encode(to, &request, &err) == NDT_OK, "%s", err.text);
}

/* The first decoding may fill in a frame_id that is empty; the second finds what the first has left. */
static void check_request(const char *text, size_t size)
{
    struct ndt_request_message request;
    struct ndt_error err = {""};
    if (web_json_request(text, size, &request, &err) != NDT_OK ||
        ndt_request_encode(&first, &request, &err) != NDT_OK) {
        require_one_line(&err);
        return;
    }
    decode_and_encode(&first, &second);
    decode_and_encode(&second, &first);
    FUZZ_REQUIRE(first.size == second.size && memcmp(first.data, second.data, first.size) == 0, "%zu and %zu bytes",
                 first.size, second.size);
}

static char *copy_of(const char *text, size_t size, size_t *copied)
{
    char *out = NULL;
    FILE *file = open_memstream(&out, copied);
    FUZZ_REQUIRE(file, "no memory");
    web_json_copy(file, text, size);
    FUZZ_REQUIRE(fclose(file) == 0, "no memory");
    return out;
}

static void check_copy(const char *text, size_t size)
{
    struct ndt_error err = {""};
    size_t once_size, twice_size;
    if (web_json_check(text, size, &err) != NDT_OK) {
        require_one_line(&err);
        return;
    }
    char *once = copy_of(text, size, &once_size), *twice = copy_of(once, once_size, &twice_size);
    FUZZ_REQUIRE(web_json_check(once, once_size, &err) == NDT_OK, "%s: %s", err.text, once);
    FUZZ_REQUIRE(once_size == twice_size && memcmp(once, twice, once_size) == 0, "%s, then %s", once, twice);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* An allocation of exact size shows reads beyond the end. */
    char *text = malloc(size ? size : 1);
    FUZZ_REQUIRE(text, "no memory");
    memcpy(text, data, size);
    check_request(text, size);
    check_copy(text, size);
    free(text);
    return 0;
}

/* Bytes as often as words: the structure matters as much as the names. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    if (fuzz_below(&random, 2))
        return LLVMFuzzerMutate(data, size, max_size);
    return text_mutate(data, size, max_size, &random);
}
