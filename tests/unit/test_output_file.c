/* Output files are complete or absent. */
#include <signal.h>
#include <sys/resource.h>

#include "ndt_io/output_file.h"
#include "run_tests.h"
#include "temp_dir.h"

static void expect_text(const char *path, const char *expected)
{
    size_t size;
    uint8_t *data = temp_read(path, &size);
    ck_assert_ptr_nonnull(data);
    ck_assert_str_eq((const char *)data, expected);
    free(data);
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(test_commit_replaces_the_target)
{
    struct ndt_output out;
    const char *path = temp_text("a.txt", "old");
    ck_assert_int_eq(ndt_output_open(&out, path, NULL), NDT_OK);
    fputs("new", out.file);
    fflush(out.file);
    expect_text(path, "old");
    ck_assert(temp_exists(temp_path("a.txt.tmp")));
    ck_assert_int_eq(ndt_output_commit(&out, NULL), NDT_OK);
    expect_text(path, "new");
    ck_assert(!temp_exists(temp_path("a.txt.tmp")));
    ck_assert_ptr_null(out.file);
    ndt_output_discard(&out);
}

TEST(test_discard_leaves_the_target)
{
    struct ndt_output out;
    const char *path = temp_text("a.txt", "old");
    ck_assert_int_eq(ndt_output_open(&out, path, NULL), NDT_OK);
    fputs("new", out.file);
    ndt_output_discard(&out);
    expect_text(path, "old");
    ck_assert(!temp_exists(temp_path("a.txt.tmp")));
    ck_assert_int_eq(ndt_output_open(&out, temp_path("b.txt"), NULL), NDT_OK);
    ndt_output_discard(&out);
    ck_assert(!temp_exists(temp_path("b.txt")));
}

TEST(test_symbolic_link_is_followed)
{
    struct ndt_output out;
    const char *path = temp_text("a.txt", "old");
    ck_assert_int_eq(symlink("a.txt", temp_path("link.txt")), 0);
    ck_assert_int_eq(ndt_output_open(&out, temp_path("link.txt"), NULL), NDT_OK);
    fputs("new", out.file);
    ck_assert_int_eq(ndt_output_commit(&out, NULL), NDT_OK);
    expect_text(path, "new");
    struct stat info;
    ck_assert_int_eq(lstat(temp_path("link.txt"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
}

TEST(test_unwritable_targets)
{
    struct ndt_output out;
    struct ndt_error err = {""};
    const char *path = temp_path("missing/a.txt");
    ck_assert_int_eq(ndt_output_open(&out, path, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_ptr_null(out.file);
    ndt_output_discard(&out);
    ck_assert_int_eq(ndt_output_open(&out, temp_dir, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "directory"));
    ck_assert_int_eq(ndt_output_open(&out, "", &err), NDT_ERR_ARGUMENT);
}

TEST(test_devices_are_written_directly)
{
    struct ndt_output out;
    struct ndt_error err = {""};
    ck_assert_int_eq(ndt_output_open(&out, "/dev/null", NULL), NDT_OK);
    fputs("gone", out.file);
    ck_assert_int_eq(ndt_output_commit(&out, NULL), NDT_OK);
    ck_assert(!temp_exists("/dev/null.tmp"));
    ck_assert_int_eq(ndt_output_open(&out, "/dev/full", NULL), NDT_OK);
    fputs("too much", out.file);
    ck_assert_int_eq(ndt_output_commit(&out, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "/dev/full: "));
    ck_assert_int_eq(ndt_output_open(&out, "-", NULL), NDT_OK);
    ck_assert_ptr_eq(out.file, stdout);
    ck_assert_int_eq(ndt_output_commit(&out, NULL), NDT_OK);
    ck_assert_int_ge(fileno(stdout), 0);
}

/* The disk becomes full: only the old file remains. */
TEST(test_a_failed_write_leaves_the_target)
{
    struct ndt_output out;
    struct ndt_error err = {""};
    struct rlimit before, small;
    const char *path = temp_text("a.txt", "old");
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(ndt_output_open(&out, path, NULL), NDT_OK);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 10000; i++)
        fputs("new and long", out.file);
    enum ndt_status status = ndt_output_commit(&out, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(status, NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    expect_text(path, "old");
    ck_assert(!temp_exists(temp_path("a.txt.tmp")));
}
