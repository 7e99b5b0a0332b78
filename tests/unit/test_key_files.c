/** @file
 * @brief Tests of owner and mode of key files and lists of clients. */
#include <check.h>
#include <fcntl.h>
#include <zmq.h>

#include "ndtd/curve_keys.h"
#include "temp_dir.h"

static struct ndt_error err;
static char key[NDTD_KEY_TEXT + 1];
static char path[512];

static void setup(void)
{
    char public[NDTD_KEY_TEXT + 1], secret[NDTD_KEY_TEXT + 1];
    temp_dir_make();
    zmq_curve_keypair(public, secret);
    snprintf(path, sizeof(path), "%s", temp_text("key", secret));
}

static enum ndt_status read_list(void)
{
    struct ndtd_client_list list = {0};
    const enum ndt_status status = ndtd_client_list_read(&list, path, &err);
    ndtd_client_list_free(&list);
    return status;
}

/* The line names the file, its owner and its mode. */
static void names_all(unsigned owner, const char *mode)
{
    char words[64];
    snprintf(words, sizeof(words), "owner %u, mode %s", owner, mode);
    ck_assert_msg(strstr(err.text, path) && strstr(err.text, words), "no '%s' in '%s'", words, err.text);
}

START_TEST(secret_keys_are_of_one_user)
{
    static const struct {
        mode_t mode;
        const char *text;
    } refused[] = {{0660, "0660"}, {0620, "0620"}, {0604, "0604"}, {0602, "0602"}, {0644, "0644"}};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        ck_assert_int_eq(chmod(path, refused[i].mode), 0);
        ck_assert_msg(ndtd_key_read(path, 1, key, &err) == NDT_ERR_IO, "mode %s is accepted", refused[i].text);
        names_all(getuid(), refused[i].text);
    }
    /* A group that may read: the file of an administrator for the user of the service. */
    for (mode_t mode = 0600; mode <= 0640; mode += 040) {
        ck_assert_int_eq(chmod(path, mode), 0);
        ck_assert_int_eq(ndtd_key_read(path, 1, key, &err), NDT_OK);
    }
}
END_TEST

START_TEST(lists_are_not_writable_for_all)
{
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(read_list(), NDT_OK);
    ck_assert_int_eq(chmod(path, 0664), 0);
    ck_assert_int_eq(read_list(), NDT_OK);
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(read_list(), NDT_ERR_IO);
    names_all(getuid(), "0666");
    ck_assert_int_eq(ndtd_key_read(path, 0, key, &err), NDT_ERR_IO);
}
END_TEST

START_TEST(files_of_others_are_refused)
{
    ck_assert_int_eq(chmod(path, 0644), 0);
    if (chown(path, 12345, (gid_t)-1) != 0)
        return; /* without privileges no file can be given away */
    ck_assert_int_eq(read_list(), NDT_ERR_IO);
    names_all(12345, "0644");
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(ndtd_key_read(path, 1, key, &err), NDT_ERR_IO);
    names_all(12345, "0600");
}
END_TEST

START_TEST(a_fifo_does_not_block)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(ndtd_key_read(path, 1, key, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "is not a regular file"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("key_files");
    TCase *all = tcase_create("key_files");
    tcase_add_checked_fixture(all, setup, temp_dir_remove);
    tcase_add_test(all, secret_keys_are_of_one_user);
    tcase_add_test(all, lists_are_not_writable_for_all);
    tcase_add_test(all, files_of_others_are_refused);
    tcase_add_test(all, a_fifo_does_not_block);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
