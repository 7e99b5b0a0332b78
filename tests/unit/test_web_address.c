/* Addresses to listen on, names in Host headers, origins, tokens. */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run_tests.h"
#include "temp_dir.h"
#include "web_address.h"
#include "web_control.h"

static struct ndt_error err;

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(addresses_are_read)
{
    static const struct {
        const char *text, *means;
        int is_loopback;
    } cases[] = {
        {"127.0.0.1:8080", "127.0.0.1:8080", 1},
        {"8080", "127.0.0.1:8080", 1},
        {":80", "127.0.0.1:80", 1},
        {"localhost:1", "127.0.0.1:1", 1},
        {"0.0.0.0:0", "0.0.0.0:0", 0},
        {"[::1]:9", "[::1]:9", 1},
        {"[::]:65535", "[::]:65535", 0},
        {"127.5.5.5:1", "127.5.5.5:1", 1},
        {"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", 0},
    };
    static const char *const bad[] = {"",
                                      ":",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:-1",
                                      "::1:80",
                                      "[::1]",
                                      "[::1]80",
                                      "[::1]:x",
                                      "[127.0.0.1]:80",
                                      "1.2.3:80",
                                      "example.com:80",
                                      "127.0.0.1:80 ",
                                      "[::1:80",
                                      "127.0.0.1:000080"};
    struct web_address address;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(web_address_parse(cases[i].text, &address, &err) == NDT_OK, "%s: %s", cases[i].text,
                      err.text);
        ck_assert_str_eq(address.text, cases[i].means);
        ck_assert_msg(web_address_is_loopback(&address) == cases[i].is_loopback, "%s", cases[i].text);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(web_address_parse(bad[i], &address, &err) == NDT_ERR_ARGUMENT, "%s", bad[i]);
}

TEST(a_port_has_one_listener)
{
    struct web_address first, second;
    int first_fd, second_fd;
    ck_assert_int_eq(web_address_parse("127.0.0.1:0", &first, &err), NDT_OK);
    ck_assert_int_eq(web_address_listen(&first, &first_fd, &err), NDT_OK);
    ck_assert_int_ne(first.port, 0);
    ck_assert_int_eq(web_address_parse(first.text, &second, &err), NDT_OK);
    ck_assert_int_eq(web_address_listen(&second, &second_fd, &err), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "another program listens there"));
    close(first_fd);
}

static struct sockaddr_storage local(const char *address)
{
    struct sockaddr_storage out = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&out;
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1)
        out.ss_family = AF_INET;
    else {
        ck_assert_int_eq(inet_pton(AF_INET6, address, &six->sin6_addr), 1);
        out.ss_family = AF_INET6;
    }
    return out;
}

TEST(hosts)
{
    static const char *const names[] = {"robot.lan", "Viewer"};
    static const struct {
        const char *host, *at;
        int is_allowed;
    } cases[] = {
        {"localhost", "127.0.0.1", 1},
        {"LocalHost:8080", "127.0.0.1", 1},
        {"127.0.0.1:9999", "127.0.0.1", 1},
        {"127.1.2.3", "127.0.0.1", 1},
        {"[::1]:8080", "127.0.0.1", 1},
        {"[0:0::1]", "::1", 1},
        {"192.168.1.5:8080", "192.168.1.5", 1},
        {"192.168.1.5:8080", "::ffff:192.168.1.5", 1},
        {"192.168.1.6", "192.168.1.5", 0},
        {"192.168.1.6", "::ffff:192.168.1.5", 0},
        {"[fd00::5]", "fd00::5", 1},
        {"[fd00::6]", "fd00::5", 0},
        {"robot.lan:8080", "127.0.0.1", 1},
        {"ROBOT.lan", "127.0.0.1", 1},
        {"viewer", "127.0.0.1", 1},
        {"evil.example", "127.0.0.1", 0},
        {"localhost.evil.example", "127.0.0.1", 0},
        {"127.0.0.1.evil.example", "127.0.0.1", 0},
        {"localhost.", "127.0.0.1", 0},
        {"localhost:99999", "127.0.0.1", 0},
        {"localhost:", "127.0.0.1", 0},
        {"localhost:80:80", "127.0.0.1", 0},
        {"localhost evil", "127.0.0.1", 0},
        {"user@localhost", "127.0.0.1", 0},
        {"localhost/x", "127.0.0.1", 0},
        {"", "127.0.0.1", 0},
        {":8080", "127.0.0.1", 0},
        {"[::1", "127.0.0.1", 0},
        {"[::1]x", "127.0.0.1", 0},
        {"[localhost]", "127.0.0.1", 0},
        {"2130706433", "127.0.0.1", 0},
        {"0x7f.1", "127.0.0.1", 0},
        {"0.0.0.0", "127.0.0.1", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sockaddr_storage at = local(cases[i].at);
        ck_assert_msg(web_host_is_allowed(cases[i].host, (const struct sockaddr *)&at, names, 2) ==
                          cases[i].is_allowed,
                      "%s at %s", cases[i].host, cases[i].at);
    }
    char name[WEB_HOST_MAX], text[400];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    ck_assert(!web_host_parse(text, name));
    text[WEB_HOST_MAX - 1] = '\0';
    ck_assert(web_host_parse(text, name));
}

TEST(origins)
{
    ck_assert(web_origin_is_same("http://localhost:8080", "localhost:8080"));
    ck_assert(web_origin_is_same("https://Robot.lan", "robot.lan"));
    ck_assert(!web_origin_is_same("http://localhost:8081", "localhost:8080"));
    ck_assert(!web_origin_is_same("http://localhost", "localhost:8080"));
    ck_assert(!web_origin_is_same("null", "localhost:8080"));
    ck_assert(!web_origin_is_same("", "localhost:8080"));
    ck_assert(!web_origin_is_same("http://evil.example", "localhost:8080"));
    ck_assert(!web_origin_is_same("file://localhost:8080", "localhost:8080"));
    ck_assert(!web_origin_is_same("localhost:8080", "localhost:8080"));
}

static const char *token_file(const char *text, mode_t mode)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/token", temp_dir);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    ck_assert_int_eq(chmod(path, mode), 0);
    return path;
}

TEST(tokens)
{
    char token[WEB_TOKEN_MAX + 1], other[WEB_TOKEN_MAX + 1];
    ck_assert_int_eq(web_token_read(token_file("0123456789abcdef\n", 0600), token, &err), NDT_OK);
    ck_assert_str_eq(token, "0123456789abcdef");
    ck_assert_int_eq(web_token_read(token_file("0123456789abcdef\n", 0644), token, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(web_token_read(token_file("0123456789abcde\n", 0600), token, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(web_token_read(token_file("0123456789abcdef\nsecond", 0600), token, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(web_token_read(token_file("0123456789 abcdef", 0600), token, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(web_token_read("/nowhere/at/all", token, &err), NDT_ERR_IO);
    char text[WEB_TOKEN_MAX + 10];
    memset(text, 'z', sizeof(text));
    text[WEB_TOKEN_MAX + 1] = '\0';
    ck_assert_int_eq(web_token_read(token_file(text, 0600), token, &err), NDT_ERR_ARGUMENT);
    text[WEB_TOKEN_MAX] = '\0';
    ck_assert_int_eq(web_token_read(token_file(text, 0600), token, &err), NDT_OK);
    ck_assert_int_eq(web_token_make(token, &err), NDT_OK);
    ck_assert_int_eq(web_token_make(other, &err), NDT_OK);
    ck_assert_uint_eq(strlen(token), 32);
    ck_assert_str_ne(token, other);
}

TEST(authorization)
{
    static const char token[] = "0123456789abcdef";
    ck_assert(web_token_is_right("Bearer 0123456789abcdef", token));
    ck_assert(web_token_is_right("bearer 0123456789abcdef", token));
    ck_assert(!web_token_is_right(NULL, token));
    ck_assert(!web_token_is_right("", token));
    ck_assert(!web_token_is_right("Bearer ", token));
    ck_assert(!web_token_is_right("Bearer 0123456789abcdeg", token));
    ck_assert(!web_token_is_right("Bearer 0123456789abcde", token));
    ck_assert(!web_token_is_right("Bearer 0123456789abcdef0", token));
    ck_assert(!web_token_is_right("Basic 0123456789abcdef", token));
    ck_assert(!web_token_is_right("0123456789abcdef", token));
}
