/* Key files and lists of clients: the same bytes as secret key, public key and list. */
#include <string.h>

#include "fuzz.h"
#include "fuzz_file.h"
#include "ndtd/curve_keys.h"
#include "text_mutator.h"

static struct fuzz_file file;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_file_open(&file, "keys.txt");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ndtd_client_list clients;
    struct ndt_error err = {""};
    char key[NDTD_KEY_TEXT + 1];
    fuzz_file_write(&file, data, size);
    const enum ndt_status status = ndtd_key_read(file.path, 1, key, &err);
    FUZZ_REQUIRE(status != NDT_OK || strlen(key) == NDTD_KEY_TEXT, "a short key");
    FUZZ_REQUIRE(ndtd_key_read(file.path, 0, key, &err) == status, "secret and public differ: %s", err.text);
    if (ndtd_client_list_read(&clients, file.path, &err) != NDT_OK) {
        FUZZ_REQUIRE(status != NDT_OK, "a key that is not a list: %s", err.text);
        return 0;
    }
    FUZZ_REQUIRE(clients.count > 0 && clients.count <= NDTD_MAX_CLIENTS, "%zu clients", clients.count);
    for (size_t i = 0; i < clients.count; i++)
        FUZZ_REQUIRE(ndtd_client_list_has(&clients, clients.keys[i]), "client %zu", i);
    ndtd_client_list_free(&clients);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    return text_mutate(data, size, max_size, &random);
}
