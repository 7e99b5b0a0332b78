/* JSON of ndt-web: what is accepted, integers that JavaScript cannot hold, requests of the page. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "golden_vector.h"
#include "run_tests.h"
#include "web_json.h"

static struct ndt_error err;

static enum ndt_status check_text(const char *text)
{
    return web_json_check(text, strlen(text), &err);
}

TEST(json_is_accepted_and_refused)
{
    static const char *const good[] = {
        "0",
        "-0",
        "1.5e-3",
        "\"a\\n\\u00e9\\\"\"",
        "[]",
        "{}",
        " [ 1 , 2 ] ",
        "{\"a\":{\"b\":[true,false,null]}}",
        "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    };
    static const char *const bad[] = {
        "",
        " ",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "-",
        "nul",
        "truE",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\n\"",
        "[",
        "[1",
        "[1,]",
        "[1 2]",
        "{",
        "{1:2}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1",
        "1 2",
        "{} {}",
        "NaN",
        "Infinity",
        "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(check_text(good[i]) == NDT_OK, "%s: %s", good[i], err.text);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(check_text(bad[i]) == NDT_ERR_FORMAT && *err.text, "%s", bad[i]);
}

static void assert_copy(const char *text, const char *expected)
{
    char out[512] = "";
    FILE *file = fmemopen(out, sizeof(out), "w");
    web_json_copy(file, text, strlen(text));
    fclose(file);
    ck_assert_str_eq(out, expected);
}

TEST(large_integers_become_text)
{
    assert_copy("{\"map_id\":18364758544493064720,\"n\":9007199254740992,\"m\":9007199254740993}",
                "{\"map_id\":\"18364758544493064720\",\"n\":9007199254740992,\"m\":\"9007199254740993\"}");
    assert_copy("{\"stamp_ns\":1317042272349000123,\"x\":1317042272349000123}",
                "{\"stamp_ns\":1317042272349000123,\"x\":\"1317042272349000123\"}");
    assert_copy("[-9007199254740993,-5,1e300,0.12345678901234567]",
                "[\"-9007199254740993\",-5,1e300,0.12345678901234567]");
    assert_copy("{\"text\":\"12345678901234567890 \\\" 12345678901234567890\"}",
                "{\"text\":\"12345678901234567890 \\\" 12345678901234567890\"}");
    assert_copy("{\"_ns\":[12345678901234567],\"a\":12345678901234567}",
                "{\"_ns\":[12345678901234567],\"a\":\"12345678901234567\"}");
}

TEST(messages_become_objects)
{
    const struct golden_vector golden = golden_read("result_state");
    struct web_blob *json = web_json_message(golden.bytes, golden.size, &err);
    ck_assert_ptr_nonnull(json);
    ck_assert_int_eq(web_json_check((const char *)json->data, json->size, &err), NDT_OK);
    ck_assert_ptr_nonnull(strstr((const char *)json->data, "\"map_id\":\"18364758544493064720\""));
    ck_assert_ptr_nonnull(strstr((const char *)json->data, "\"stamp_ns\":1317042272349000123,"));
    web_blob_drop(json);
    err.text[0] = '\0';
    ck_assert_ptr_null(web_json_message(golden.bytes, golden.size - 1, &err));
    ck_assert_str_ne(err.text, "");
}

TEST(values_are_found)
{
    static const char text[] = " {\"a\":{\"b\":7},\"b\":-12,\"c\":\"x\\u0041\",\"d\":1.5,\"e\":[\"b\"]}";
    const size_t size = sizeof(text) - 1;
    char out[3];
    int64_t number = 0;
    ck_assert(web_json_integer(text, size, "b", &number) && number == -12);
    ck_assert(!web_json_integer(text, size, "d", &number) && !web_json_integer(text, size, "c", &number));
    ck_assert(!web_json_integer(text, size, "f", &number) && !web_json_integer("[1]", 3, "b", &number));
    ck_assert(web_json_text(text, size, "c", out, sizeof(out)));
    ck_assert_str_eq(out, "xA");
    ck_assert(!web_json_text(text, size, "b", out, sizeof(out)));
}

static struct ndt_request_message request;

static enum ndt_status read_request(const char *text)
{
    return web_json_request(text, strlen(text), &request, &err);
}

TEST(requests_are_read)
{
    ck_assert_int_eq(
        read_request("{\"op\":\"initial_pose\",\"pose\":[1,2.5,-3e0,0,0,0,1],\"stamp_ns\":\"1317042272349000123\","
                     "\"covariance\":[1,0,0,0,0,0,0,1,0,0,0,0,0,0,1,0,0,0,0,0,0,1,0,0,0,0,0,0,1,0,0,0,0,0,0,4]}"),
        NDT_OK);
    ck_assert_int_eq(request.op, NDT_OP_INITIAL_POSE);
    ck_assert(request.pose.has_pose && request.pose.has_covariance && !request.pose.has_twist);
    ck_assert(request.pose.pose.t_m[1] == 2.5 && request.pose.pose.q_xyzw[3] == 1);
    ck_assert(request.pose.covariance[35] == 4);
    ck_assert_int_eq(request.pose.stamp_ns, 1317042272349000123);
    ck_assert_str_eq(request.pose.frame_id, "map");
    ck_assert_int_eq(read_request("{\"op\":\"localize\",\"position\":[1,2,3],\"deviation\":[5,5,5],\"heading\":0.5,"
                                  "\"heading_deviation\":0.1,\"apply\":false}"),
                     NDT_OK);
    ck_assert(request.hint.has_position && request.hint.has_heading_deviation && request.hint.heading_rad == 0.5);
    ck_assert_int_eq(request.hint.apply, 0);
    ck_assert_int_eq(read_request("{\"op\":\"localize\"}"), NDT_OK);
    ck_assert_int_eq(request.hint.apply, 1);
    ck_assert_int_eq(read_request("{\"path\":\"a.bag\",\"op\":\"start_recording\"}"), NDT_OK);
    ck_assert_str_eq(request.path, "a.bag");
}

TEST(other_requests_are_refused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "expected"},
        {"[]", "object"},
        {"{}", "'op' is missing"},
        {"{\"pose\":[0,0,0,0,0,0,1]}", "'op' is missing"},
        {"{\"op\":\"format_disk\"}", "'format_disk' is not an operation"},
        {"{\"op\":7}", "a string"},
        {"{\"op\":\"stop\",\"op\":\"start\"}", "'op' occurs twice"},
        {"{\"op\":\"stop\",\"colour\":1}", "'colour' is not an argument"},
        {"{\"op\":\"initial_pose\",\"pose\":[0,0,0]}", "3 numbers, 7 are expected"},
        {"{\"op\":\"initial_pose\",\"pose\":[0,0,0,0,0,0,1,2]}", "the end of the array"},
        {"{\"op\":\"initial_pose\",\"pose\":[0,0,0,0,0,0,null]}", "a number"},
        {"{\"op\":\"initial_pose\",\"pose\":[0,0,1e999,0,0,0,1]}", "below 1.8e308"},
        {"{\"op\":\"initial_pose\",\"pose\":7}", "an array"},
        {"{\"op\":\"initial_pose\",\"pose\":[0,0,0,0,0,0,1],\"stamp_ns\":\"12x\"}", "a stamp"},
        {"{\"op\":\"initial_pose\",\"pose\":[0,0,0,0,0,0,1],\"stamp_ns\":1e30}", "9.2e18"},
        {"{\"op\":\"localize\",\"apply\":1}", "true or false"},
        {"{\"op\":\"localize\",\"apply\":true}}", "nothing behind"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        err.text[0] = '\0';
        ck_assert_msg(read_request(cases[i].text) != NDT_OK, "%s", cases[i].text);
        ck_assert_msg(strstr(err.text, cases[i].says) != NULL, "%s: %s", cases[i].text, err.text);
    }
}

TEST(long_texts_are_refused)
{
    char text[2000];
    memset(text, 'x', sizeof(text));
    memcpy(text, "{\"op\":\"stop\",\"frame_id\":\"", 25);
    memcpy(text + 200, "\"}", 3);
    ck_assert_int_eq(read_request(text), NDT_ERR_LIMIT);
    memset(text, '1', sizeof(text));
    memcpy(text, "{\"op\":\"localize\",\"heading\":", 27);
    memcpy(text + 200, "}", 2);
    ck_assert_int_eq(read_request(text), NDT_ERR_FORMAT);
}

/* Any bytes are refused or read, without reading beyond them (under the sanitizers). */
TEST(damaged_requests)
{
    static const char good[] =
        "{\"op\":\"initial_pose\",\"pose\":[1,2,3,0,0,0,1],\"stamp_ns\":\"12\",\"apply\":true}";
    for (size_t at = 0; at < sizeof(good) - 1; at++) {
        for (unsigned value = 0; value < 256; value++) {
            char *copy = malloc(sizeof(good) - 1);
            memcpy(copy, good, sizeof(good) - 1);
            copy[at] = (char)value;
            (void)!web_json_request(copy, sizeof(good) - 1, &request, NULL);
            (void)!web_json_request(copy, at, &request, NULL);
            free(copy);
        }
    }
}
