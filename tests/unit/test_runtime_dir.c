/** @file
 * @brief Tests of the default directory of sockets and of lists of cores. */
#define _GNU_SOURCE /* CPU sets */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ndtd/realtime.h"
#include "ndtd/runtime_dir.h"
#include "temp_dir.h"

static struct ndt_error err;
static char path[256];

static void setup(void)
{
    temp_dir_make();
    unsetenv("RUNTIME_DIRECTORY");
    unsetenv("XDG_RUNTIME_DIR");
}

START_TEST(systemd_directory_has_priority)
{
    char list[600];
    snprintf(list, sizeof(list), "%s:/elsewhere", temp_dir);
    setenv("RUNTIME_DIRECTORY", list, 1);
    ck_assert_int_eq(ndtd_runtime_dir(path, sizeof(path), 1, &err), NDT_OK);
    ck_assert_str_eq(path, temp_dir);
    char address[300], want[400];
    ck_assert_int_eq(ndtd_default_address(address, sizeof(address), "", "poses", 1, &err), NDT_OK);
    snprintf(want, sizeof(want), "ipc://%s/poses.ipc", temp_dir);
    ck_assert_str_eq(address, want);
    ck_assert_int_eq(ndtd_default_address(address, sizeof(address), "tcp://127.0.0.1:1", "poses", 1, &err), NDT_OK);
    ck_assert_str_eq(address, "tcp://127.0.0.1:1");
}
END_TEST

START_TEST(path_too_long_is_an_error)
{
    char little[8];
    setenv("RUNTIME_DIRECTORY", temp_dir, 1);
    ck_assert_int_eq(ndtd_runtime_dir(little, sizeof(little), 1, &err), NDT_ERR_LIMIT);
}
END_TEST

START_TEST(user_directory_is_created)
{
    struct stat info;
    if (access("/run/ndtd", F_OK) == 0 || access("/run", W_OK) == 0)
        return; /* the directory of the system has priority */
    setenv("XDG_RUNTIME_DIR", temp_dir, 1);
    ck_assert_int_eq(ndtd_runtime_dir(path, sizeof(path), 1, &err), NDT_OK);
    ck_assert_str_eq(path, temp_path("ndtd"));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
}
END_TEST

static const char *cores(const char *text)
{
    static char out[64];
    cpu_set_t set;
    size_t used = 0;
    out[0] = '\0';
    if (ndtd_cpu_list_parse(text, &set, &err) != NDT_OK)
        return "error";
    for (size_t i = 0; i < 16; i++)
        if (CPU_ISSET(i, &set))
            used += (size_t)snprintf(out + used, sizeof(out) - used, "%zu ", i);
    return out;
}

START_TEST(lists_of_cores)
{
    ck_assert_str_eq(cores(""), "");
    ck_assert_str_eq(cores("3"), "3 ");
    ck_assert_str_eq(cores("0,2-4,9"), "0 2 3 4 9 ");
    const char *const wrong[] = {",", "1,", "a", "1-", "-1", "3-2", "1 2", "99999", "5000", "1-2-3"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_str_eq(cores(wrong[i]), "error");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime_dir");
    TCase *all = tcase_create("runtime_dir");
    tcase_add_checked_fixture(all, setup, temp_dir_remove);
    tcase_add_test(all, systemd_directory_has_priority);
    tcase_add_test(all, path_too_long_is_an_error);
    tcase_add_test(all, user_directory_is_created);
    tcase_add_test(all, lists_of_cores);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
